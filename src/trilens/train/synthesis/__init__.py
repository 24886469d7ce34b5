"""Training data from language models: questions for the passages of a collection."""
