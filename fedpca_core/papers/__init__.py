"""The five papers as data: every printed number and checkable claim, with its place in the text."""
