"""Warns before a configured certificate expires: an alarm from 21 days before."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gateway.app.parts import Run
from gateway.background import background
from gateway.config.configuration import Configuration
from gateway.config.named_file import secret_path

ALARM = "certificate"

WARN_DAYS = 21
"""Days before its end from which a certificate should be renewed."""

INTERVAL = 3600.0
"""Seconds between two checks; the next one after a renewal ends the alarm."""

DAY_SECONDS = 86_400


class Certificate(NamedTuple):
    """The key that names a certificate's file, the file, and the days until it expires."""

    key: str
    file: Path
    days: float


def certificate_files(configuration: Configuration) -> dict[Path, str]:
    """Return the files of certificates that the gateway presents or trusts, each with its key."""
    found: dict[Path, str] = {}
    for place, tables, keys in (
        ("listener", configuration.listeners, ("tls_certificate", "client_ca")),
        ("uplink", configuration.uplinks, ("tls_certificate", "ca_file")),
    ):
        for index, table in enumerate(tables):
            for key in keys:
                name = getattr(table, key)
                if name is not None:
                    with suppress(ValueError):  # a credential that only the service has
                        found.setdefault(secret_path(name), f"{place}[{index}].{key}")
    return found


def certificates(configuration: Configuration, wall_seconds: float) -> Iterator[Certificate]:
    """Yield each certificate whose end can be read, with its remaining days."""
    from gateway.telemetry.certificates import ends

    for file, key in certificate_files(configuration).items():
        end = ends(file)
        if end is not None:
            yield Certificate(key, file, (end - wall_seconds) / DAY_SECONDS)


def spell_end(certificate: Certificate) -> str:
    """Return when it expires, for people."""
    key, file, days = certificate
    if days <= 0:
        return f"{key}: {file} has ended {-days:.0f} days ago"
    return f"{key}: {file} ends in {days:.0f} days"


def certificate_warnings(configuration: Configuration, wall_seconds: float) -> Iterator[str]:
    """Yield a line for each certificate that has ended, or ends within WARN_DAYS."""
    for each in certificates(configuration, wall_seconds):
        if each.days <= WARN_DAYS:
            yield f"{spell_end(each)}: renew it, the gateway reads it by itself"


def watch_certificates(run: Run) -> None:
    """Raise and end the alarm `certificate` while the gateway runs."""
    watching = background(_watch(run))
    run.stack.callback(watching.cancel)


async def _watch(run: Run) -> None:
    raised = False
    while True:
        if raised or certificate_files(run.configuration):
            text = await asyncio.to_thread(_ending, run)
            run.alarm(ALARM, text)
            raised = bool(text)
        await asyncio.sleep(INTERVAL)


def _ending(run: Run) -> str:
    found = certificates(run.configuration, run.clock.wall_ms() / 1000)
    return "; ".join(spell_end(each) for each in found if each.days <= WARN_DAYS)
