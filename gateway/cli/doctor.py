"""`tidegate doctor`: the health of the board that a gateway runs on."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.app.checks.findings import Finding, Health, Installation, findings_of
from gateway.app.disk.data_folder import holder
from gateway.app.process_limits import default_limit, occupied
from gateway.cli.local_broker import LocalBroker
from gateway.cli.own_gateway import url_of
from gateway.cli.parser import LOCAL_BROKER
from gateway.cli.run import gateway_url
from gateway.cli.run_arguments import DATA, INSTALLED
from gateway.cli.uplink import STATE, Figures, figures, uplink_names
from gateway.cli.user import CONFIG
from gateway.config.load import load
from gateway.errors import TidegateError
from gateway.storage.engine.database import FILE_NAME
from gateway.telemetry.card_life import spell_bytes

LIMIT, HELD, CLOSED = "memory/limit", "memory/bytes", "memory/closed"
LARGEST = "shares/largest"

ALARMS = "alarm/"

FILTERS = tuple(
    f"$SYS/broker/tidegate/{name}" for name in ("memory/#", LARGEST, "uplink/#", f"{ALARMS}#")
)

WELL = ("connected", "waiting", "off")
"""Healthy states of an uplink: `waiting` is for its schedule or next budget."""

MUCH = 4
"""The fraction of a limit above which a resource is reported."""


def running(installation: Installation) -> Iterator[Finding]:
    """Report what clients may make the gateway hold, and a running gateway's own findings."""
    configured = (
        None if installation.configuration is None else installation.configuration.memory.limit
    )
    limit = spell_bytes(configured or default_limit())
    source = "as configured" if configured else "a share of this machine's memory"
    process = holder(installation.data)
    size = occupied(process) if process.isdecimal() else 0
    if not size:
        yield Finding(Health.OK, f"memory: the limit is {limit} for what clients hold ({source})")
        return
    yield Finding(
        Health.OK,
        f"memory: the gateway, process {process}, occupies {spell_bytes(size)};"
        f" the limit is {limit} for what clients hold ({source})",
    )
    yield from _held(installation)


def _held(installation: Installation) -> Iterator[Finding]:
    """Report the running gateway's findings, if it can be queried without a password."""
    broker = broker_of(installation)
    try:
        found = figures(broker, FILTERS, LIMIT)
    except TidegateError as error:
        yield Finding(Health.NOTE, f"figures of the running gateway are missing here, {error}")
        return
    yield counted(found)
    yield from largest(str(found.get(LARGEST, "{}")))
    yield from links(found)
    yield from alarms(found)


def broker_of(installation: Installation) -> LocalBroker:
    """Return how the gateway is queried: its socket, else its first listener."""
    configuration = installation.configuration
    own = None if configuration is None else gateway_url(configuration)
    return LocalBroker(url_of(installation.data) or own or LOCAL_BROKER, None, None, None)


def links(found: Mapping[str, int | float | str]) -> Iterator[Finding]:
    """Report whether each uplink is up, and why it is not."""
    for name in uplink_names(found) or ([""] if STATE in found else []):
        part = f"uplink/{name}/" if name else "uplink/"
        state, error = str(found.get(f"{part}state", "off")), found.get(f"{part}error")
        text = f"{part.rstrip('/').replace('/', ' ')}: {state}" + (f", {error}" if error else "")
        yield Finding(Health.OK if state in WELL and not error else Health.BAD, text)


def alarms(found: Mapping[str, int | float | str]) -> Iterator[Finding]:
    """Yield each raised alarm, with its text."""
    for name, value in sorted(found.items()):
        if name.startswith(ALARMS):
            yield Finding(Health.BAD, f"alarm {name.removeprefix(ALARMS)}: {_text_of(str(value))}")


def _text_of(alarm: str) -> str:
    try:
        return str(json.loads(alarm)["text"])
    except (ValueError, KeyError, TypeError):
        return alarm


def counted(found: Figures) -> Finding:
    """Return how much clients hold of what they may, as the gateway counts it."""
    held, limit, closed = (int(found.get(name, 0)) for name in (HELD, LIMIT, CLOSED))
    text = f"memory: clients hold {spell_bytes(held)} of {spell_bytes(limit)}"
    if closed:
        text += f"; {closed:,} connections were closed for lack of it since the start"
    return Finding(Health.WARNING if closed else Health.OK, text)


def largest(text: str) -> Iterator[Finding]:
    """Report the largest holders of scarce resources; `text` is the figure `shares/largest`."""
    for name, kind in json.loads(text).items():
        if MUCH * kind["total"] < kind["limit"]:
            continue
        holders = [f"{holder} {count:,}" for holder, count in kind["holders"]]
        holders += [f"client {client!r} {count:,}" for client, count in kind["clients"][:1]]
        yield Finding(
            Health.NOTE,
            f"shares: {name}: {kind['total']:,} of {kind['limit']:,};"
            f" most have {', '.join(holders)}",
        )


def places(data: Path | None, config: Path | None) -> tuple[Path, Path | None]:
    """Return the data folder and the configuration to examine.

    What is not given is the installed service's, unless the present folder has a gateway's `var`.
    """
    if data is None:
        data = DATA if (DATA / FILE_NAME).exists() or not INSTALLED.exists() else INSTALLED
    if config is None and data == INSTALLED and CONFIG.exists():
        config = CONFIG
    return data, config


def doctor(data: Path, config: Path | None) -> int:
    """Print the findings; return 1 if something is bad, 0 otherwise.

    Raises ConfigurationError for an unusable configuration file. It only reads, and works beside a
    running gateway.
    """
    installation = Installation(data, None if config is None else load(config))
    findings = [*findings_of(installation), *running(installation)]
    for finding in findings:
        print(f"{finding.health:<8} {finding.text}")
    print(_verdict(findings))
    return 1 if any(finding.health is Health.BAD for finding in findings) else 0


def _verdict(findings: list[Finding]) -> str:
    bad = sum(finding.health is Health.BAD for finding in findings)
    warnings = sum(finding.health is Health.WARNING for finding in findings)
    if bad or warnings:
        return f"doctor: {bad} bad, {warnings} warnings; what to do: tidegate docs alarms"
    return "doctor: all well"
