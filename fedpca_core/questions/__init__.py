"""Studies: settings in, results out, step by step."""
