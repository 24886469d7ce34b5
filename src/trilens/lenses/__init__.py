"""Lenses: one retrieval method per file, from its configuration to the explanation of its scores; and their registry."""
