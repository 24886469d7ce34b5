"""Documents and vectors of collections, sent to other engines: one module for each."""
