"""Private runs: what a budget costs, what it protects, and how it is accounted."""
