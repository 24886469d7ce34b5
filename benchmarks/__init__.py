"""Benchmarks: one script per chapter of the book, and recorded results with everything needed to reproduce them."""
