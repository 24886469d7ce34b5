"""Collections on several machines: parts that score like the whole, published commits, replicas and their coordinator."""
