"""Errors between this computer and a board."""

from gateway.errors import TidegateError


class FlashingError(TidegateError):
    """The board or its port failed; the text says what to try next."""


class BusyPortError(FlashingError):
    """Another program has the port open."""


class MissingPortError(FlashingError):
    """There is no such port, perhaps only for a moment."""
