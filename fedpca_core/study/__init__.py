"""Figures as plain data: what a page draws, the bundle prints and the poster plays."""
