"""Judged collections: layouts of corpora, queries and relevance judgements, and how to obtain them."""
