"""Training examples: readers of the usual formats, and `Examples`, which holds millions of texts once each."""
