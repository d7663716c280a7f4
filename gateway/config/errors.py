"""Mistakes of a configuration, in a form that its author can correct."""

from collections.abc import Sequence
from dataclasses import is_dataclass


class ConfigurationError(Exception):
    """An unusable setting: names the file, the key, the value and what is allowed.

    With an empty key the whole file is unusable, and `allowed` says why. The value is None if the
    key is missing.
    """

    def __init__(self, file: str, key: str, value: object, allowed: str) -> None:
        shown = repr(list(value) if isinstance(value, tuple) else value)  # as TOML writes it
        if isinstance(value, bool):
            shown = shown.lower()
        if not key:
            text = f"{file}: {allowed}"
        elif value is None or is_dataclass(value):  # a table, which has no form of one line
            text = f"{file}: {key}: {allowed}"
        else:
            text = f"{file}: {key} = {shown} is not allowed: {allowed}"
        super().__init__(text)
        self.file = file
        self.key = key
        self.value = value
        self.allowed = allowed


class ManyConfigurationErrors(ConfigurationError):  # noqa: N818 - several
    """All mistakes, a line each; key and value are those of the first."""

    def __init__(self, errors: Sequence[ConfigurationError]) -> None:
        first = errors[0]
        super().__init__(first.file, first.key, first.value, first.allowed)
        self.args = ("\n".join(map(str, errors)),)
        self.errors = tuple(errors)


def raise_all(errors: Sequence[ConfigurationError]) -> None:
    """Raise one error with all of these; nothing if there are none."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ManyConfigurationErrors(errors)
