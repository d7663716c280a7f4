"""The version of this Tidegate.

Read from here and not from the installed package's metadata, whose reader brings the parsers of
mail and of archives into memory.
"""

from typing import Final

VERSION: Final = "0.1.0"
