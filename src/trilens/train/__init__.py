"""Training of retrieval models: data, models, losses and runs. Needs torch."""
