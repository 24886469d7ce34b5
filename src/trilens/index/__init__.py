"""Array structures of one segment: build, merge, open and search; the exact searches are their oracles."""
