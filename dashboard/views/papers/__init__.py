"""Drawing the Papers page."""
