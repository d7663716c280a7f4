"""Errors that cross a border of the gateway, each with the text its reader needs."""

CANNOT_START = 2
"""Exit status where the command line, the configuration or what it names has to be mended first."""

START_AGAIN = 3
"""Exit status of a gateway that found something that its next start mends."""


class TidegateError(Exception):
    """An error whose text is written for the person who runs the gateway."""


class RestartError(TidegateError):
    """The gateway ended by itself, because the next start mends what it has found."""


class StartError(TidegateError):
    """The gateway cannot start: a busy port, a data folder in use, a missing extra."""
