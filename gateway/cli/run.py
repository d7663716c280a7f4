"""`tidegate run`: the gateway, until it is interrupted."""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from gateway.cli.interpreter import import_asyncio, needs_tls, set_up_collector
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import bare, read
from gateway.errors import StartError

DEFAULT_PORT = 1883

SWITCH_INTERVAL = 0.0005
"""Seconds after which one thread leaves the interpreter to another that waits for it. A commit of
500 messages comes back to its thread dozens of times; with Python's 5 ms it took 100 ms and more
beside a busy event loop, and answers wait for it."""

HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - listeners named so, not bound here
"""Where this machine reaches a listener on every address of a family."""


def run(config: Path | None, port: int | None, data: Path, *, durable: bool) -> int:
    """Run until SIGINT or SIGTERM; raise TidegateError if the gateway cannot start."""
    configuration, mistakes = _configuration(config, port)
    if port is not None:
        configuration = _with_port(configuration, port)
    import_asyncio(tls=needs_tls(configuration))
    again = None if config is None else partial(_read_again, config, port)
    _serve(configuration, mistakes, data, again, durable=durable)
    return 0


def _read_again(config: Path, port: int | None) -> Configuration:
    """Return what the file and the command line say now, checked."""
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
    """Say on a terminal what to try next."""
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
    """Return where the other commands find this gateway; empty for their default, None if nowhere.

    They speak TCP and TLS, without a certificate of their own.
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
