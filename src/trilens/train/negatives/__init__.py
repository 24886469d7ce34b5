"""Hard negatives: mining to a file, tables refreshed during training, and token-bag search."""
