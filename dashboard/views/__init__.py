"""Drawing the results of the studies; nothing here computes."""
