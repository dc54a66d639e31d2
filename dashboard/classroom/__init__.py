"""A class that guesses on its phones: rooms in memory, their addresses, the lecturer's view."""
