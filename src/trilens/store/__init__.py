"""The collection on disk: a SQLite catalog of documents and immutable segments of arrays, changed by whole commits."""
