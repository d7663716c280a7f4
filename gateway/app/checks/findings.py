"""The checks of `tidegate doctor`: each function checks one thing and reports findings."""

import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

from gateway.app.certificates import WARN_DAYS, certificates, spell_end
from gateway.app.checks.file_warnings import NOBODY, user_name
from gateway.app.checks.service import find_service, service_warnings
from gateway.config.configuration import Configuration
from gateway.errors import TidegateError
from gateway.salvage.form import PAGE_BYTES
from gateway.settings.outbox import OutboxSettings
from gateway.settings.uplink import WAIT, UplinkSettings
from gateway.storage.engine.database import FILE_NAME, database_file
from gateway.storage.engine.database_file import INCREMENTAL, open_beside
from gateway.storage.engine.replace import DAMAGED, SOUND
from gateway.storage.engine.unread import unread_files
from gateway.storage.outbox.bounds import SMALL_ROW, for_rows
from gateway.storage.state.daily_writes import Written, written
from gateway.telemetry.block_device import BlockDevice, block_device, mount_of
from gateway.telemetry.card_life import default_endurance, life_days, spell_bytes, spell_days
from gateway.uplink.landing.folder import landed_files, landing_directory


class Health(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    health: Health
    text: str


@dataclass(frozen=True, slots=True)
class Installation:
    """The gateway that is checked, running or not."""

    data: Path
    configuration: Configuration | None


LITTLE_SPACE = 0.05
"""The part of a file system that should stay free: SD cards wear faster when they are full."""

FEW_DESCRIPTORS = 1_024
"""The hard limit of descriptors below which a gateway for many clients may run out."""

MAXIMUM_FILES = 10_000
"""Files of the data folder whose owners are compared; landing files may be many."""

WORN_PERCENT = 80
"""From this wear on a device should be replaced."""

SHORT_LIFE_DAYS = 2 * 365
"""A card that lasts shorter than this deserves a warning."""

DAY = 86_400
SHORTEST_RECORD = 600
"""Seconds of running after which recorded writes are representative."""

THROTTLED = Path("/sys/devices/platform/soc/soc:firmware/get_throttled")
UNDER_VOLTAGE = 0x1_0001
"""Bits of a Raspberry Pi's firmware: undervoltage now, or since the board started."""


def findings_of(installation: Installation) -> Iterator[Finding]:
    """Yield every finding, in the order of the report."""
    try:
        there = installation.data.is_dir()
    except OSError as error:
        yield _closed(error)
        return
    if not there:
        yield Finding(
            Health.BAD, f"data folder {installation.data} does not exist: start the gateway once"
        )
        return
    closed: set[Finding] = set()  # several checks may read the same file
    for check in CHECKS:
        try:
            yield from check(installation)
        except OSError as error:
            found = _closed(error)
            if found not in closed:
                closed.add(found)
                yield found


def _closed(error: OSError) -> Finding:
    """Return the finding for something unreadable, such as another user's data folder."""
    reason = error.strerror or str(error)
    hint = (
        ": try it as root, or as the gateway's user" if isinstance(error, PermissionError) else ""
    )
    return Finding(Health.BAD, f"{error.filename or 'something'} cannot be read, {reason}{hint}")


def _folder(installation: Installation) -> Iterator[Finding]:
    mount = mount_of(installation.data)
    place = f"data folder {installation.data} ({mount.kind} on {mount.source})"
    if "ro" in mount.options:
        yield Finding(Health.BAD, f"{place} is read-only: nothing is stored")
    elif not os.access(installation.data, os.W_OK):
        yield Finding(Health.BAD, f"{place} cannot be written to by this user")
    elif mount.kind in ("tmpfs", "ramfs"):
        yield Finding(Health.BAD, f"{place} is memory: a power cut loses everything")
    else:
        yield Finding(Health.OK, f"{place} can be written to")
    if "noatime" not in mount.options and "relatime" not in mount.options and mount.kind == "ext4":
        yield Finding(Health.NOTE, f"mount {mount.target} with noatime: each read is a write now")


def _capacity(installation: Installation) -> Iterator[Finding]:
    usage = shutil.disk_usage(installation.data)
    health = Health.OK if usage.free > LITTLE_SPACE * usage.total else Health.WARNING
    text = f"{spell_bytes(usage.free)} of {spell_bytes(usage.total)} are free"
    yield Finding(
        health, text if health is Health.OK else f"{text}: free some space, full cards wear faster"
    )


def _database(installation: Installation) -> Iterator[Finding]:
    path = database_file(installation.data)
    unread = unread_files(path)
    for damaged in sorted(path.parent.glob(f"{path.name}.{DAMAGED}-*[0-9Z]")):
        text = f"{damaged.name}: a damaged database was set aside"
        if damaged in unread:
            text += (
                ", and nothing of it could be read: each start of the gateway tries it again; copy"
                " it to another disk, and delete it if nobody needs it"
            )
        yield Finding(Health.BAD if damaged in unread else Health.WARNING, text)
    for earlier in sorted(path.parent.glob(f"{path.name}.{SOUND}-*[0-9Z]")):
        text = f"{earlier.name}: a database of another schema, whose rows were carried over"
        yield Finding(Health.NOTE, f"{text}: delete it when nobody needs it")
    if not path.exists():
        yield Finding(Health.NOTE, f"{path.name} is not there yet: the gateway never ran here")
        return
    log = path.with_name(path.name + "-wal")
    size = path.stat().st_size
    log_bytes = log.stat().st_size if log.exists() else 0
    try:
        with open_beside(path) as connection:
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            (auto_vacuum,) = connection.execute("PRAGMA auto_vacuum").fetchone()
            connection.execute("SELECT count(*) FROM sqlite_schema")
    except TidegateError as error:
        yield Finding(Health.BAD, f"{error}: the gateway's next start salvages what can be read")
        return
    yield Finding(Health.OK, f"{path.name}: {spell_bytes(size)}, WAL {spell_bytes(log_bytes)}")
    if (page_bytes, auto_vacuum) != (PAGE_BYTES, INCREMENTAL):
        text = f"{path.name} has pages of {page_bytes} bytes, auto_vacuum is {auto_vacuum}"
        hint = "another program wrote it so; it works, and needs more of the disk"
        yield Finding(Health.NOTE, f"{text}: {hint}")


def _wear(installation: Installation) -> Iterator[Finding]:
    device = block_device(installation.data)
    if device is None:
        yield Finding(Health.NOTE, "no block device under the data folder: its wear is unknown")
        return
    worn = device.worn()
    if worn is not None:
        health = Health.OK if worn <= WORN_PERCENT else Health.WARNING
        yield Finding(health, f"{device.name} says that {worn} % of its life are used")
    total = _written(installation.data)
    if total is None or total.seconds < SHORTEST_RECORD:
        yield Finding(Health.NOTE, "too little was recorded to estimate how long the card lasts")
        return
    yield _life(device, total, installation.configuration)
    yield from _budget(total, installation.configuration)


def _life(device: BlockDevice, total: Written, configuration: Configuration | None) -> Finding:
    day = total.written * DAY // total.seconds
    commits = total.commits * DAY // total.seconds
    stated = None if configuration is None else configuration.storage.endurance
    endurance = stated or default_endurance(device.size)
    source = "as configured" if stated else f"estimated from its {spell_bytes(device.size)}"
    days = life_days(endurance, day)
    health = Health.OK if days >= SHORT_LIFE_DAYS else Health.WARNING
    return Finding(
        health,
        f"{device.name} lasts {spell_days(days)} at {spell_bytes(day)} and {commits:,} commits"
        f" a day (it bears {spell_bytes(endurance)}, {source})",
    )


def _budget(total: Written, configuration: Configuration | None) -> Iterator[Finding]:
    budget = None if configuration is None else configuration.storage.write_budget
    if budget is None:
        return
    day = total.written * DAY // total.seconds
    health = Health.OK if day <= budget else Health.WARNING
    place = "within" if health is Health.OK else "above"
    yield Finding(health, f"{place} the write budget of {spell_bytes(budget)} a day")


def _written(data: Path) -> Written | None:
    path = database_file(data)
    if not path.exists():
        return None
    try:
        with open_beside(path) as connection:
            return written(connection)
    except TidegateError:
        return None


def _certificates(installation: Installation) -> Iterator[Finding]:
    configuration = installation.configuration
    for each in () if configuration is None else certificates(configuration, time.time()):
        if each.days > WARN_DAYS:
            yield Finding(Health.OK, spell_end(each))
        else:
            health = Health.WARNING if each.days > 0 else Health.BAD
            yield Finding(health, f"{spell_end(each)}: renew it, the gateway reads it by itself")


def _owners(installation: Installation) -> Iterator[Finding]:
    """Report files of the data folder that its owner, as whom the gateway runs, may not write."""
    if not (installation.data / FILE_NAME).exists():
        return  # it may be another program's folder
    owner = installation.data.stat().st_uid
    files = islice(installation.data.rglob("*"), MAXIMUM_FILES)
    strange = [file for file in files if file.lstat().st_uid not in (owner, NOBODY)]
    if strange:
        name = user_name(owner)
        yield Finding(
            Health.BAD,
            f"{len(strange)} files in {installation.data} do not belong to {name}, as"
            f" {strange[0].name}: chown -R {name}: {installation.data}",
        )


def _service(installation: Installation) -> Iterator[Finding]:
    configuration = installation.configuration
    service = None if configuration is None else find_service(configuration)
    if configuration is not None and service is not None:
        for line in service_warnings(configuration, service):
            yield Finding(Health.BAD, line)


def _descriptors(_: Installation) -> Iterator[Finding]:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FEW_DESCRIPTORS:
        text = f"only {hard} descriptors: set LimitNOFILE= in the unit for more clients"
        yield Finding(Health.WARNING, text)


def _power(_: Installation) -> Iterator[Finding]:
    try:
        throttled = int(THROTTLED.read_text(), 16)
    except (OSError, ValueError):
        return  # not a Raspberry Pi
    if throttled & UNDER_VOLTAGE:
        text = "the board had too little voltage: a weak power supply is what damages cards"
        yield Finding(Health.WARNING, text)
    else:
        yield Finding(Health.OK, "the power supply was strong enough since the board started")


def _bridges(installation: Installation) -> Iterator[Finding]:
    for bridge in (
        installation.configuration.bridges if installation.configuration is not None else ()
    ):
        trouble = bridge.kind.examine(bridge.settings)
        health = Health.WARNING if trouble else Health.OK
        name = f"{bridge.kind.name} {bridge.name}"
        yield Finding(health, f"{name}: {trouble or 'nothing is wrong'}")


NEARLY_FULL = 0.8
"""The part of a bound above which a warning is given."""

_WAITING = """
SELECT coalesce(sum(rows), 0), CAST(total(bytes) AS INTEGER) FROM (
  SELECT rows, bytes FROM outbox_totals UNION ALL
  SELECT count(*), total(size) FROM outbox
  WHERE id > (SELECT coalesce(max(up_to), 0) FROM outbox_totals))
"""


def _outbox(installation: Installation) -> Iterator[Finding]:
    """Report how many messages wait for the fleet, and the remaining capacity."""
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
        yield Finding(Health.BAD, f"{text}: it is full: the fleet does not get new messages")
    elif used >= NEARLY_FULL:
        yield Finding(Health.WARNING, f"{text}: it is nearly full")
    else:
        yield Finding(Health.OK, text)


def _landing(installation: Installation) -> Iterator[Finding]:
    """Report the disk space of landing files, and its bound."""
    configuration = installation.configuration
    for uplink in () if configuration is None else configuration.uplinks:
        directory = landing_directory(uplink, installation.data)
        if configuration is not None and directory is not None:
            yield _landing_finding(uplink, directory / configuration.gateway_id)


def _landing_finding(uplink: UplinkSettings, folder: Path) -> Finding:
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
    """Return the used part of the tightest bound; at least 1 if no small message fits."""
    used = (size + SMALL_ROW) / for_rows(config.maximum_bytes)
    if config.maximum_messages is not None:
        used = max(used, rows / config.maximum_messages)
    return used


def _waiting(installation: Installation) -> tuple[int, int] | None:
    """Return the waiting messages and their bytes, None without a readable database."""
    path = database_file(installation.data)
    if not path.exists():
        return None
    try:
        with open_beside(path) as connection:
            rows, size = connection.execute(_WAITING).fetchone()
    except TidegateError:
        return None
    return int(rows), int(size)


CHECKS: tuple[Callable[[Installation], Iterator[Finding]], ...] = (
    _folder,
    _capacity,
    _owners,
    _database,
    _service,
    _certificates,
    _outbox,
    _landing,
    _wear,
    _power,
    _descriptors,
    _bridges,
)
