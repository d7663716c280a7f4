"""Errors that cross a border of the gateway, each with the text its reader needs."""


class TidegateError(Exception):
    """An error whose text is written for the person who runs the gateway."""


class RestartError(TidegateError):
    """The gateway ended by itself, because the next start mends what it has found."""


class StartError(TidegateError):
    """The gateway cannot start: a busy port, a data folder in use, a missing extra."""
