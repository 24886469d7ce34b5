"""Tables and plots of README.md, BOOK.md and the model card, generated from recorded rows."""
