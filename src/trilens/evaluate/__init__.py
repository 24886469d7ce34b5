"""Retrieval evaluation: runs over judged collections, measures, significance tests and reports."""
