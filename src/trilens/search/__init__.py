"""From queries to hits: through one lens, or several and their fusion."""
