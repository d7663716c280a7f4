"""What `tidegate doctor` says about the outbox and the landing folder: how full they are."""

from collections.abc import Iterator
from pathlib import Path

from gateway.app.checks.finding import Finding, Health, Installation
from gateway.app.uplink.landing import landing_directory
from gateway.errors import TidegateError
from gateway.settings.outbox import OutboxSettings
from gateway.settings.uplink import WAIT, UplinkSettings
from gateway.storage.engine.database import database_file
from gateway.storage.engine.database_file import open_beside
from gateway.storage.outbox.bounds import SMALL_ROW, for_rows
from gateway.telemetry.card_life import spell_bytes
from gateway.uplink.landing.folder import landed_files

NEARLY_FULL = 0.8
"""The part of a bound from which on it deserves a warning."""

_WAITING = """
SELECT coalesce(sum(rows), 0), CAST(total(bytes) AS INTEGER) FROM (
  SELECT rows, bytes FROM outbox_totals UNION ALL
  SELECT count(*), total(size) FROM outbox
  WHERE id > (SELECT coalesce(max(up_to), 0) FROM outbox_totals))
"""


def outbox(installation: Installation) -> Iterator[Finding]:
    """Say how many messages wait for the fleet, and whether there is room for more."""
    configuration = installation.configuration
    if configuration is None or not configuration.uplinks:
        return
    waiting = _waiting(installation)
    if waiting is None:
        return
    rows, size = waiting
    text = f"outbox: {rows:,} messages, {spell_bytes(size)}, wait for the fleet"
    used = _used(configuration.outbox, rows, size)
    if used >= 1:
        yield Finding(Health.BAD, f"{text}: it is full, the fleet misses what comes now")
    elif used >= NEARLY_FULL:
        yield Finding(Health.WARNING, f"{text}: it is nearly full")
    else:
        yield Finding(Health.OK, text)


def landing(installation: Installation) -> Iterator[Finding]:
    """Say what landing files take of the disk, and how much they may."""
    configuration = installation.configuration
    for uplink in () if configuration is None else configuration.uplinks:
        directory = landing_directory(uplink, installation.data)
        if configuration is not None and directory is not None:
            yield _landing(uplink, directory / configuration.gateway_id)


def _landing(uplink: UplinkSettings, folder: Path) -> Finding:
    count = size = 0
    for file in landed_files(folder):
        count += 1
        size += file.bytes
    bound = uplink.landing_maximum_bytes
    text = f"landing: {count:,} files take {spell_bytes(size)} of {spell_bytes(bound)}"
    if size >= bound and uplink.landing_when_full == WAIT:
        return Finding(Health.BAD, f"{text}: it is full, messages wait in the outbox")
    if size >= NEARLY_FULL * bound:
        then = "messages wait" if uplink.landing_when_full == WAIT else "the oldest are deleted"
        return Finding(Health.WARNING, f"{text}: when it is full, {then}")
    return Finding(Health.OK, text)


def _used(config: OutboxSettings, rows: int, size: int) -> float:
    """Return which part of the tightest bound is used; 1 and more where nothing small fits."""
    used = (size + SMALL_ROW) / for_rows(config.maximum_bytes)
    if config.maximum_messages is not None:
        used = max(used, rows / config.maximum_messages)
    return used


def _waiting(installation: Installation) -> tuple[int, int] | None:
    """Return the messages that wait and their bytes, None where no database can say it."""
    path = database_file(installation.data)
    if not path.exists():
        return None
    try:
        with open_beside(path) as connection:
            rows, size = connection.execute(_WAITING).fetchone()
    except TidegateError:
        return None
    return int(rows), int(size)
