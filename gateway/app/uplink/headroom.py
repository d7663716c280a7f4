"""Estimates how long an outage of the fleet may last, and how long catching up takes."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.mqtt.message import Message
from gateway.settings.outbox import OutboxSettings
from gateway.settings.uplinks import place_of
from gateway.storage.engine.free_space import RESERVE_BYTES
from gateway.storage.outbox.bounds import for_rows
from gateway.storage.outbox.row import (
    OutboxRow,
    row_size,
)
from gateway.telemetry.card_life import spell_bytes

FOR_EVER = 10 * 365 * 86_400
"""Maximum seconds reported: ten years."""

DAY = 86_400


@dataclass(frozen=True, slots=True)
class Load:
    """Incoming messages a second for the fleet, and bytes of the file for each."""

    rate: float
    row_bytes: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """What may still wait: bytes of the file, free bytes of the disk, messages; None: any."""

    quota: int
    disk: int | None = None
    messages: int | None = None


def survives(load: Load, capacity: Capacity) -> float:
    """Return the seconds until an outage that begins now fills the outbox."""
    if load.rate <= 0:
        return FOR_EVER
    space = capacity.quota if capacity.disk is None else min(capacity.quota, capacity.disk)
    messages = space / load.row_bytes
    if capacity.messages is not None:
        messages = min(messages, capacity.messages)
    return min(FOR_EVER, max(0.0, messages / load.rate))


def drains(waiting: float, up: float, arriving: float) -> float:
    """Return the seconds until this many messages are sent at `up` a second.

    New ones arrive meanwhile; if they arrive as fast as they are sent, FOR_EVER.
    """
    if waiting <= 0:
        return 0.0
    return min(FOR_EVER, waiting / (up - arriving)) if up > arriving else FOR_EVER


def spell_seconds(seconds: float) -> str:
    """Return a readable time, such as `9.4 days`, `3.1 h`, `12 min` or `40 s`."""
    if seconds >= FOR_EVER:
        return "more than 10 years"
    for unit, length in (("days", DAY), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def check_promise(configuration: Configuration, free: int | None = None) -> str | None:
    """Return how the configuration satisfies `[outbox] survive`, None without it.

    `free` are the bytes of the disk for the data folder, None if unknown. Raises
    ConfigurationError, with the calculation, if it cannot be satisfied.
    """
    config = configuration.outbox
    if not config.survive or not configuration.uplinks:
        return None
    row = OutboxRow(Message("", bytes(config.expected_bytes or 0)), "0" * 10, "main", 1, "live")
    load = Load(config.expected_rate or 0.0, row_size(row))
    capacity = Capacity(
        for_rows(config.maximum_bytes),
        None if free is None else max(0, free - RESERVE_BYTES),
        config.maximum_messages,
    )
    for broken in _broken(configuration, load, capacity):
        value = spell_seconds(config.survive)
        raise ConfigurationError(configuration.file, "outbox.survive", value, broken)
    return f"survives {spell_seconds(survives(load, capacity))} offline: {_needs(config, load)}"


def _needs(config: OutboxSettings, load: Load) -> str:
    messages = load.rate * config.survive
    return (
        f"{load.rate:g} messages a second of {config.expected_bytes} bytes, which take"
        f" {load.row_bytes:.0f} bytes of the file each, are {messages:,.0f} messages and"
        f" {spell_bytes(messages * load.row_bytes)} in {spell_seconds(config.survive)}"
    )


def _broken(configuration: Configuration, load: Load, capacity: Capacity) -> Iterator[str]:
    """Yield each limit that violates `survive`, with the calculation."""
    config, uplinks = configuration.outbox, configuration.uplinks
    bounds = (
        (Capacity(capacity.quota), f"maximum_bytes leaves {spell_bytes(capacity.quota)} for rows"),
        (
            Capacity(capacity.quota, messages=capacity.messages),
            f"maximum_messages is {capacity.messages}",
        ),
        (
            Capacity(capacity.quota, capacity.disk),
            f"the disk has {spell_bytes(capacity.disk or 0)} free",
        ),
    )
    for bound, text in bounds:
        seconds = survives(load, bound)
        if seconds < config.survive:
            yield f"{_needs(config, load)}; {text}: that is {spell_seconds(seconds)}"
    ages = [("outbox", config.maximum_age)]
    ages += [(f"stream {each.name}", each.maximum_age) for up in uplinks for each in up.streams]
    for whose, age in ages:
        if 0 < age < config.survive:
            yield f"maximum_age of the {whose} drops messages after {spell_seconds(age)}"
    daily = load.rate * (config.expected_bytes or 0) * DAY
    for index, uplink in enumerate(uplinks):
        if uplink.budget is not None and uplink.batch is None and daily >= uplink.budget:
            yield (
                f"{spell_bytes(daily)} come in a day, and {place_of(uplinks, index)}.budget lets"
                f" {spell_bytes(uplink.budget)} up: the backlog would never drain"
            )
