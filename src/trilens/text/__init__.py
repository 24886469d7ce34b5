"""Documents and the readers that produce them, passage splitting, datasets, and text analysis for BM25."""
