"""A run from somewhere else, opened from its file: what everybody may make of it."""
