"""What the pages share: the shell, the theme's colours, the replay view, small helpers."""
