"""Training data: readers of the common formats, and `Examples`, which stores every text once."""
