"""Judged collections and system names that the quality benchmarks share with their tables."""

# Collections of the averaged column, by folder name.
AVERAGED = ("scifact", "nfcorpus", "vaswani", "cranfield", "cacm")
TUNED = "tuned fusion of five lenses"
DEFAULT_SEARCH = "default search"
