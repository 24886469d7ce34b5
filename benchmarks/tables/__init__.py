"""Tables and plots of README.md and BOOK.md, made from recorded rows."""
