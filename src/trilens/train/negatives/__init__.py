"""Hard negatives: mined into a file beforehand, drawn from a table that is refreshed, or found while training."""
