"""Private runs: data, method, noise and guarantee."""
