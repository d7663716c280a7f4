"""What a telegram says: values of series, of one time; and what finds telegrams in bytes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.bridges.readings.reading import Value


class Measured(NamedTuple):
    """A value of a telegram."""

    quantity: str
    value: Value
    unit: str | None = None
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Telegram:
    """Values that were taken together; `time` is milliseconds since 1970, None if it says none."""

    values: tuple[Measured, ...]
    time: int | None = None


class TelegramDecoder(Protocol):
    """Finds telegrams; what fails its check is counted in `failed`, and none of it is given."""

    failed: int
    skipped: int
    """Bytes that belong to no telegram."""

    def feed(self, data: bytes) -> Iterable[Telegram]:
        """Give the telegrams that `data` ends."""
