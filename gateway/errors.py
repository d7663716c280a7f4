"""Errors that cross a border of the gateway, each with the text its reader needs."""


class TidegateError(Exception):
    """An error whose text is written for the person who runs the gateway."""


class ConfigurationError(TidegateError):
    """A setting that cannot be used: names the file, the key, the value and what is allowed."""

    def __init__(self, file: str, key: str, value: object, allowed: str) -> None:
        super().__init__(f"{file}: {key} = {value!r}: {allowed}")
        self.file = file
        self.key = key
        self.value = value
        self.allowed = allowed


class StartError(TidegateError):
    """The gateway cannot start: a busy port, a data folder in use, a missing extra."""
