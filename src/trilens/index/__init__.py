"""Structures that find the best rows: an exact searcher for each representation, and a fast one."""
