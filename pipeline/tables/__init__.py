"""The tables on disk, what was committed to them, and how they are read and written."""
