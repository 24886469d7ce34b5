"""Text in: documents, the readers that make them, passages, and the analysis that BM25 counts words with."""
