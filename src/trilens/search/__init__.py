"""Search: options, candidates, fusion, re-ranking and query expansion, from queries to hits."""
