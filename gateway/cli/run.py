"""`tidegate run`: the gateway, until it is interrupted."""

import asyncio
import dataclasses
import gc
import sys
from pathlib import Path

from gateway.app.check import check_configuration
from gateway.app.gateway import serve
from gateway.config.load import bare, load
from gateway.config.settings import Configuration
from gateway.telemetry.logs import set_up

DEFAULT_PORT = 1883

HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - listeners named so, not bound here
"""Where this machine reaches a listener on every address of a family."""


def run(config: Path | None, port: int | None, data: Path, *, durable: bool) -> int:
    """Run until SIGINT or SIGTERM; raise TidegateError if the gateway cannot start."""
    set_up()
    configuration = bare(port or DEFAULT_PORT) if config is None else load(config)
    if port is not None:
        configuration = _with_port(configuration, port)
    check_configuration(configuration)
    gc.freeze()  # what was imported stays: the collector need not look at it again
    asyncio.run(
        serve(configuration, data, durable=durable, on_ready=lambda: _invite(configuration))
    )
    return 0


def _with_port(configuration: Configuration, port: int) -> Configuration:
    first, *others = configuration.listeners
    return dataclasses.replace(
        configuration, listeners=(dataclasses.replace(first, port=port), *others)
    )


def _invite(configuration: Configuration) -> None:
    """Say on a terminal what to try next."""
    if not sys.stdout.isatty():
        return
    command = sys.argv[0]
    listener = configuration.listeners[0]
    host = HERE.get(listener.host, listener.host)
    if ":" in host:
        host = f"[{host}]"
    url = (
        ""
        if (host, listener.port) == ("127.0.0.1", DEFAULT_PORT)
        else f" mqtt://{host}:{listener.port}"
    )
    lines = [
        "",
        "Tidegate is running. In another terminal try:",
        "",
        f"  {command} subscribe 'sensors/#'{url}",
        f"  {command} tui{url}",
        f"  {command} uplink pause{url}",
        "",
        "Ctrl-C stops it.",
        "",
    ]
    print("\n".join(lines), flush=True)
