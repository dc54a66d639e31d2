"""Detection of unusual traffic by methods that keep it at home."""
