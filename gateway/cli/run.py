"""`tidegate run`: prepares Python for a gateway, and runs it until it is interrupted."""

import dataclasses
import gc
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from gateway.cli.run_arguments import DATA, DURABILITY
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import bare, read
from gateway.errors import StartError

DEFAULT_PORT = 1883

TLS_SCHEMES = ("mqtts", "wss")

SWITCH_INTERVAL = 0.0005
"""Seconds after which one thread releases the interpreter to another that waits. A commit of 500
messages needs it dozens of times: with Python's 5 ms it took 100 ms and more beside a busy event
loop, and answers wait for it."""

HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - listeners named so, not bound here
"""Addresses of this machine for a listener on every address of a family."""


def run(
    config: Path | None = None,
    port: int | None = None,
    data: Path = DATA,
    durability: str = DURABILITY[0],
) -> int:
    """Run until SIGINT or SIGTERM; raise TidegateError if the gateway cannot start."""
    configuration, mistakes = _configuration(config, port)
    if port is not None:
        configuration = _with_port(configuration, port)
    import_asyncio(tls=needs_tls(configuration))
    again = None if config is None else partial(_read_again, config, port)
    _serve(configuration, mistakes, data, again, durable=durability == "commit")
    return 0


def _read_again(config: Path, port: int | None) -> Configuration:
    """Return the present settings of the file and the command line, checked."""
    from gateway.app.reload.reload import read_again

    return read_again(config, lambda read: read if port is None else _with_port(read, port))


def _configuration(
    config: Path | None, port: int | None
) -> tuple[Configuration, Sequence[ConfigurationError]]:
    return read(config) if config is not None else (bare(port or DEFAULT_PORT), ())


def _serve(
    configuration: Configuration,
    mistakes: Sequence[ConfigurationError],
    data: Path,
    again: Callable[[], Configuration] | None,
    *,
    durable: bool,
) -> None:
    import asyncio

    from gateway.app.checks.check import check_configuration
    from gateway.app.start import serve
    from gateway.server.gateway_loop import GatewayLoop
    from gateway.telemetry.logs import set_levels, set_up

    set_up()
    set_levels(configuration.log)
    check_configuration(configuration, mistakes)
    sys.setswitchinterval(SWITCH_INTERVAL)
    set_up_collector()
    with asyncio.Runner(loop_factory=GatewayLoop) as runner:
        on_ready = partial(_invite, configuration)
        runner.run(serve(configuration, data, again, durable=durable, on_ready=on_ready))


def _with_port(configuration: Configuration, port: int) -> Configuration:
    first, *others = configuration.listeners
    if first.path is not None:
        raise StartError(f"--port {port}: the first listener is the Unix socket {first.path}")
    return dataclasses.replace(
        configuration, listeners=(dataclasses.replace(first, port=port), *others)
    )


def _invite(configuration: Configuration) -> None:
    """Suggest the next steps on a terminal."""
    stream: TextIO | None = sys.stdout  # None if it was closed before the start
    if stream is None or not stream.isatty():
        return
    from gateway.telemetry.buffered_output import buffered

    url = gateway_url(configuration)
    lines = ["", "Tidegate is running.", "", "Ctrl-C stops it.", ""]
    if url is not None:
        command, suffix = sys.argv[0], f" {url}" if url else ""
        lines[1:2] = [
            "Tidegate is running. In another terminal try:",
            "",
            f"  {command} subscribe 'sensors/#'{suffix}",
            f"  {command} tui{suffix}",
            f"  {command} uplink pause{suffix}",
        ]
    output = buffered(stream)  # of a terminal that may have been stopped with Ctrl-S
    output.write("\n".join([*lines, ""]))
    output.flush()


def gateway_url(configuration: Configuration) -> str | None:
    """Return the URL of this gateway for other commands; empty for the default, None if none.

    They support TCP and TLS, without a certificate of their own.
    """
    for listener in configuration.listeners:
        if listener.path is None and not listener.websocket and listener.client_ca is None:
            host = HERE.get(listener.host, listener.host)
            if ":" in host:
                host = f"[{host}]"
            if listener.tls_certificate is not None:
                return f"mqtts://{host}:{listener.port}"
            if (host, listener.port) == ("127.0.0.1", DEFAULT_PORT):
                return ""
            return f"mqtt://{host}:{listener.port}"
    return None


def needs_tls(configuration: Configuration) -> bool:
    """Return whether a listener has a certificate, or an uplink's URL asks for TLS."""
    schemes = [urlsplit(uplink.url or "").scheme for uplink in configuration.uplinks]
    return any(scheme in TLS_SCHEMES for scheme in schemes) or any(
        listener.tls_certificate is not None for listener in configuration.listeners
    )


def import_asyncio(*, tls: bool) -> None:
    """Import asyncio, without its TLS unless that is needed: it takes 4 MiB.

    Without the ssl module asyncio works as on a Python that was built without it: its own
    connections cannot use TLS. A later import of ssl works.
    """
    if tls or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # tells Python that the module is missing
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]


YOUNG_OBJECTS = 5_000
"""Objects that may be made before the collector searches them for cycles. Messages' objects have
none, nor does a client's plain connection. With Python's 700 a tenth of a connection's cost was
collections."""

YOUNG_COLLECTIONS = 0
"""Threshold of generation 1: one pass then covers some 10,000 objects, 2 to 6 ms."""

MIDDLE_COLLECTIONS = 0
"""Threshold of generation 2: one pass covers all that is not frozen, some 15,000 objects, and takes
up to 10 ms with cold caches."""

THAWED_AFTER = 16
"""Collections of generation 2, of which the last unfreezes everything: cycles of long-lived
objects, such as parts of asyncio, are found after 240,000 more objects, some 50 MB at most."""

FEW_FROZEN = 40_000
"""Frozen objects up to which they are unfrozen whenever that is due; 24,000 are the program.
Searching them takes some 10 ms; 100,000, mostly parts of compiled expressions, take 40."""

BETWEEN_THAWS = 3600.0
"""Seconds between two searches of everything if more than that is frozen. With 90,000 retained
messages one takes 80 ms in one piece, and clients could cause it at any rate."""


class Freezer:
    """Freezes what survives a collection, so that the next one skips it.

    It counts what it freezes: Python's own count takes 40 ms for a million objects.
    """

    def __init__(self) -> None:
        self._collections = 0
        self._frozen = gc.get_freeze_count()  # an upper bound: some may have been freed
        self._thaws_at = time.monotonic() + BETWEEN_THAWS

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Handle a collection (`gc.callbacks`)."""
        if info["generation"] != 2:
            return
        if phase == "stop":
            self._frozen += len(gc.get_objects(generation=2))
            gc.freeze()
            return
        self._collections += 1
        if self._collections == THAWED_AFTER:
            self._collections = 0
            if self._may_thaw():
                self._frozen = 0
                gc.unfreeze()

    def _may_thaw(self) -> bool:
        if self._frozen <= FEW_FROZEN:
            return True
        now = time.monotonic()
        if now < self._thaws_at:
            return False
        self._thaws_at = now + BETWEEN_THAWS
        return True


def set_up_collector() -> None:
    """Have the collector search rarely, and then few objects."""
    gc.freeze()  # imported modules stay
    gc.collect()  # of nothing: the survivors of a collection decide when the next is
    if sys.version_info >= (3, 14):
        gc.set_threshold(YOUNG_OBJECTS)  # its passes over old objects are bounded separately
    else:
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, MIDDLE_COLLECTIONS)
        gc.callbacks.append(Freezer())
