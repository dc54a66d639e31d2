"""Views of the Privacy page."""
