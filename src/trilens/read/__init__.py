"""From files, folders and standard input to documents: sources, formats and records."""
