"""The papers: their experiments as presets, and every number they print."""
