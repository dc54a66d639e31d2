"""Data sets from their publishers: the only room of the core that opens a connection."""
