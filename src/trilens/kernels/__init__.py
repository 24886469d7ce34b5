"""Compiled loops: plain arrays in, plain arrays out, deterministic, no knowledge of who calls them."""
