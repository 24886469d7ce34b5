"""Documents, passage splitting, and text analysis for BM25."""
