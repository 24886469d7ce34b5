"""Tests of the everyday questions: builders, merging and the chapter."""
