"""Explanations: scores as parts that add up to them, rendered as data, pages and pictures."""
