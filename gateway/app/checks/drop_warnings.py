"""Warnings for settings that drop acknowledged messages.

`drop-newest` is the default: it gives up nothing that waits, and an alarm tells.
"""

from gateway.config.configuration import Configuration
from gateway.settings.outbox import OutboxSettings, StreamSettings
from gateway.settings.uplinks import place_of


def drop_warnings(configuration: Configuration) -> list[str]:
    """Return a line for each setting that may drop acknowledged messages."""
    policy = configuration.broker.queue_when_full
    warnings = []
    if policy == "drop-oldest":
        text = f'"{policy}" gives up acknowledged messages of clients that are away too long'
        warnings.append(f"broker.queue_when_full: {text}")
    elif policy == "reject":
        text = f'"{policy}" has publishers refused while one client that is away has a full queue'
        warnings.append(f"broker.queue_when_full: {text}")
    if not configuration.uplinks:
        return warnings
    warnings += _warnings("outbox", configuration.outbox)
    for number, uplink in enumerate(configuration.uplinks):
        for index, stream in enumerate(uplink.streams):
            key = f"{place_of(configuration.uplinks, number)}.stream[{index}]"
            warnings += _warnings_of_stream(key, stream)
    return warnings


def _warnings_of_stream(key: str, stream: StreamSettings) -> list[str]:
    warnings = _warnings(key, stream)
    if stream.mode == "latest":
        warnings.append(f'{key}.mode: "latest" gives up messages for newer ones of their topic')
    if stream.mode == "expire":
        warnings.append(f'{key}.mode: "expire" gives up messages after {stream.expire_after} s')
    return warnings


def _warnings(key: str, config: OutboxSettings | StreamSettings) -> list[str]:
    warnings = []
    if config.when_full in ("drop-oldest", "drop-lowest-priority"):
        text = f'"{config.when_full}" gives up acknowledged messages for want of room'
        warnings.append(f"{key}.when_full: {text}")
    if config.maximum_age:
        text = f"acknowledged messages are given up after {config.maximum_age} s"
        warnings.append(f"{key}.maximum_age: {text}")
    return warnings
