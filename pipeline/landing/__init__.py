"""The landing folder: which files lie there, and their rows."""
