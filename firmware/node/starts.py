"""Counts the starts that did not last: after several in a row comes one in safe mode."""

from . import const

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from .loop import Clock

_FAILED_MAX = const(5)
"""Starts in a row that failed, after which the next one is in safe mode."""

_STEADY_MS = const(60000)
"""Milliseconds that a start has to last; one that ends earlier has failed."""

_SAFE_MS = const(3600000)
"""Milliseconds of safe mode after which the board tries again."""


class Starts:
    """Notes a start; `failed` is how many before it failed in a row, `safe` whether they suffice.

    The number is kept in the file `path`. A start that cannot be noted there is not counted. The
    start after one in safe mode is counted from zero again.
    """

    def __init__(self, path: str, clock: "Clock") -> None:
        self._path = path
        self._clock = clock
        self._noted = True
        self.failed = self._read()
        self.safe = self.failed >= _FAILED_MAX
        self._write(0 if self.safe else self.failed + 1)

    def step(self) -> None:
        """Note that the start has lasted, once it has."""
        if self._noted and self._clock.ms() >= _STEADY_MS:
            self.succeed()

    def succeed(self) -> None:
        """Note that the start has not failed, however it ends."""
        self._noted = False
        self._write(0)

    @property
    def over(self) -> bool:
        """Whether safe mode has lasted long enough."""
        return self.safe and self._clock.ms() >= _SAFE_MS

    def _read(self) -> int:
        try:
            with open(self._path) as file:
                return int(file.read(3) or 0)
        except (OSError, ValueError):  # the first start, or a file that was not written here
            return 0

    def _write(self, failed: int) -> None:
        if failed == self._read():
            return  # spares the flash
        try:
            with open(self._path, "w") as file:
                file.write(str(failed))
        except OSError:  # a flash that is full or worn out does not keep a node from working
            self._noted = False
