"""The live picture of the front page: one run, its costs, and what the server makes of it."""
