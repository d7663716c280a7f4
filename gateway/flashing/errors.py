"""What can go wrong between this computer and a board."""

from gateway.errors import TidegateError


class FlashingError(TidegateError):
    """The board or its port did not do what was asked; the text says what to try next."""


class BusyPortError(FlashingError):
    """Another program has the port open."""


class MissingPortError(FlashingError):
    """There is no such port, perhaps for a moment only."""
