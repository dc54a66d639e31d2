"""One question of the laboratory: its settings and studies."""
