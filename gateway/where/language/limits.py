"""The language's limits (where-language 2, 4, 5, 6.3 and 11)."""

from typing import Final

EXPRESSION_BYTES: Final = 4096
"""Longest `$where` value, in bytes of UTF-8."""

EXPRESSION_TOKENS: Final = 1024
"""Most tokens of an expression; its end is none."""

NESTING_LEVELS: Final = 32
"""Most `(`, CASE, NOT and signs open at a time; bounds the recursion of parser and evaluation."""

PATTERN_CODE_POINTS: Final = 256
"""Longest LIKE pattern."""

ARRAY_INDEX: Final = 2_147_483_647
"""Highest index of a payload array or a topic level."""

NUMERIC_STRING_CODE_POINTS: Final = 64
"""Longest text that TO_NUMBER reads; keeps hostile digit strings away from `int`."""

RULE_TOPICS: Final = 100_000
"""Topics that a rule remembers something of; further ones are flagged (where-language 13)."""

RULE_CODE_POINTS: Final = 32 * 1024 * 1024
"""Code points of the topic names and texts that a rule remembers; what is beyond is flagged, too.

The language has no such limit: topic names and texts alone could fill a small board.
"""
