"""One script per claim; rows of results with all that is needed to repeat them."""
