"""Errors that leave the gateway, each with the text for its reader."""

CANNOT_START = 2
"""Exit status if the command line, the configuration or its files must be corrected first."""

START_AGAIN = 3
"""Exit status of a gateway that found something that its next start fixes."""


class TidegateError(Exception):
    """An error whose text is written for the person who runs the gateway."""


class RestartError(TidegateError):
    """The gateway ended by itself, because the next start fixes what it has found."""


class StartError(TidegateError):
    """The gateway cannot start: a busy port, a data folder in use, a missing extra."""
