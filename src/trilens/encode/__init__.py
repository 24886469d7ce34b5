"""Encoders of texts: BM25 counts, ONNX models and their folders, families and tokenizers."""
