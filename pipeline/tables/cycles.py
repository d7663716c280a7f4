"""How often Python looks for cycles of objects, of which rows have none."""

import gc

YOUNG_OBJECTS = 50_000
"""New objects after which Python looks at them; its own 700 cost a quarter of a task's CPU time."""


def look_rarely() -> None:
    """Let this process look for cycles so rarely that tens of thousands of rows pass between."""
    gc.set_threshold(YOUNG_OBJECTS)
