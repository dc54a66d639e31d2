"""Data that come with the package; NOTICE.md says whose they are and what was done to them."""
