"""How long to wait before the next try: longer each time, and short again after success."""


class Backoff:
    """Waits in seconds: `first`, then `growth` times as long each time, at most `most`."""

    def __init__(self, first: float, growth: float, most: float) -> None:
        self._first = first
        self._growth = growth
        self._most = most
        self._following = first

    def next(self) -> float:
        """Return how long to wait now."""
        wait = self._following
        self._following = min(wait * self._growth, self._most)
        return wait

    def reset(self) -> None:
        """Begin with `first` again."""
        self._following = self._first
