"""The papers' experiments as presets, at paper size and at a size that answers at once."""
