"""The leak check: what a deployment gives away, and what stops it."""
