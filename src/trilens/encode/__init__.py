"""Encoders: texts in, representations out."""
