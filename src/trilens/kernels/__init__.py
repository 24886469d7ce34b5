"""Compiled loops over plain arrays: deterministic, and independent of the packages that call them."""
