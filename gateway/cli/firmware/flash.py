"""`tidegate firmware`: writes settings, lists ports, installs and updates boards."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway.bridges.serial.frame_body import ReadingsFrame
from gateway.bridges.serial.port import PortError, find_device, plugged_in
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.cli.own_gateway import first_url
from gateway.cli.run import gateway_url
from gateway.config.bridges import BridgeConfig
from gateway.config.errors import ConfigurationError
from gateway.config.load import load
from gateway.errors import TidegateError
from gateway.flashing.board import Board, Progress
from gateway.flashing.errors import BusyPortError, FlashingError
from gateway.flashing.esp32 import write_esp32
from gateway.flashing.first_reading import Listener
from gateway.flashing.flash import Flashed, flash
from gateway.flashing.hardware import BOARDS, SENSORS
from gateway.flashing.new_settings import new_settings
from gateway.flashing.port import Port, retried
from gateway.flashing.ports import runs_on
from gateway.flashing.settings import board_settings, node_name, read_settings
from gateway.flashing.uf2 import copy_uf2, find_drive
from gateway.settings.checks import did_you_mean

SECONDS = 15
"""Seconds for which the gateway releases its port; while we have it open it is locked."""


@contextlib.contextmanager
def borrowed(options: argparse.Namespace, path: str) -> Iterator[Port]:
    """Yield a port; if the gateway has it open, it is asked to release it."""
    was_open = False

    def borrow() -> None:
        nonlocal was_open
        was_open = True
        _ask(options, path, SECONDS)

    try:
        yield Port(path, borrow)
    finally:
        if was_open:
            with contextlib.suppress(FlashingError):  # the gateway opens it again in any case
                _ask(options, path, 0)


def _ask(options: argparse.Namespace, path: str, seconds: int) -> None:
    from gateway.cli.control_request import ask_gateway
    from gateway.cli.local_broker import LocalBroker

    request = json.dumps({"port": str(Path(path).resolve()), "seconds": seconds})
    try:
        broker, refused = LocalBroker.of(options), "does not release it"
        ask_gateway(broker, "port", request, refused, reason="none of its bridges has it")
    except TidegateError as error:
        raise BusyPortError(f"{path}: another program has it open, and {error}") from error


DESCRIBED = 24
"""Characters beside the bar: the stable path of a port leaves none of 80 columns for it."""


class Reporter:
    """Prints lines; shows a bar if standard output is a terminal."""

    def show(self, line: str) -> None:
        """Show a line."""
        print(line, flush=True)

    @contextlib.contextmanager
    def progress(self, what: str, total: int) -> Iterator[Progress]:
        """Show how many of `total` bytes are done.

        The function gets the number of further bytes.
        """
        if not total or not sys.stdout.isatty():
            yield lambda _count: None
            return
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        short = what if len(what) <= DESCRIBED else f"…{what[1 - DESCRIBED :]}"
        with Progress(*columns) as bar:
            task = bar.add_task(short, total=total)
            yield lambda count: bar.advance(task, count)


PLUG_SECONDS = 30.0
"""Seconds in which a board with a new MicroPython must answer."""


def command_flash(options: argparse.Namespace) -> int:
    """Install MicroPython if an image is given, then the node; raise TidegateError."""
    settings = board_settings(read_settings(options.file))
    reporter = Reporter()
    path = _with_micropython(options, reporter) if options.micropython else only_port(options.port)
    with borrowed(options, path) as port:
        done = flash(port, reporter, settings, compiled=not options.source, replace=options.replace)
    _show(port, done)
    return 0


def _with_micropython(options: argparse.Namespace, reporter: Reporter) -> str:
    """Install the image; return the port at which the board answers then."""
    image: Path = options.micropython
    try:
        if image.suffix == ".uf2":
            drive = options.drive or find_drive()
            with reporter.progress(str(drive), image.stat().st_size) as progress:
                copy_uf2(image, drive, progress)
            reporter.show(f"{image.name} is on {drive}; waiting for the board's port")
        else:
            with borrowed(options, only_port(options.port)) as port:
                write_esp32(image, port.device, stub=not options.no_stub)
    except OSError as error:
        raise FlashingError(f"{image}: {error.strerror}") from error
    path = retried(lambda: only_port(options.port), PLUG_SECONDS)
    retried(lambda: Board.connect(Port(path)).close(), PLUG_SECONDS)
    return path


def command_update(options: argparse.Namespace) -> int:
    """Update each board that runs a node; return 1 if one of them failed."""
    paths = _all_ports(options) if options.all else options.ports
    failed = 0
    for path in paths:
        try:
            with borrowed(options, find_device(path)) as port:
                done = flash(port, Reporter(), compiled=not options.source)
            _show(port, done)
        except (FlashingError, PortError) as error:
            print(error, file=sys.stderr)
            failed += 1
    print(f"{len(paths) - failed} of {len(paths)} nodes have this version")
    return 1 if failed else 0


def _all_ports(options: argparse.Namespace) -> list[str]:
    """Return the connected ports, and the ports of nodes in the configuration.

    The gateway of the configuration is asked to release them, unless another one is named.
    """
    ports = [each.port for each in plugged_in()]
    if options.config.exists():
        try:
            configuration = load(options.config)
        except ConfigurationError as error:
            raise TidegateError(str(error)) from error
        ports += _named(configuration.bridges, ports)
        if options.url is None:
            options.url = first_url() or gateway_url(configuration) or None
    if not ports:
        raise FlashingError(f"no board is plugged in, and {options.config} names none")
    return ports


def _named(bridges: Iterable[BridgeConfig], found: list[str]) -> list[str]:
    """Return the ports of nodes in a configuration that were not found already."""
    there = {os.path.realpath(port) for port in found}
    settings = [each.settings for each in bridges]
    serial = [each for each in settings if isinstance(each, SerialSettings)]
    nodes = [each.port for each in serial if each.format == "frames" and "://" not in each.port]
    return [port for port in nodes if _real_path(port) not in there]


def _real_path(port: str) -> str:
    """Return the real path of a port; its own name if the adapter is not connected."""
    try:
        return os.path.realpath(find_device(port))
    except PortError:
        return port


def _show(port: Port, done: Flashed) -> None:
    state = "installed" if done.changed else "as it was"
    print(f"{port}: version {done.version}, {state}; first reading of {done.reading.node}:")
    print(shown(done.reading))


def shown(frame: ReadingsFrame) -> str:
    """Return the readings of a frame, in one line."""
    return "  " + ", ".join(
        f"{each.quantity} {each.value}{f' {each.unit}' if each.unit else ''}"
        for each in frame.readings
    )


def monitor(options: argparse.Namespace) -> int:
    """Print each frame once, and text between frames; nothing is acknowledged."""
    with (
        borrowed(options, only_port(options.port)) as port,
        contextlib.closing(Listener(port)) as listener,
    ):
        _show_frames(listener, options.seconds)
    return 0


def _show_frames(listener: Listener, seconds: float | None) -> None:
    last: tuple[str, int, int] | None = None
    for frame in listener.frames(seconds):
        for line in listener.take_text():
            print(f"# {line}", flush=True)
        if frame is None:
            continue
        name = (frame.node, frame.boot, frame.sequence)
        if last is None or name[:2] != last[:2] or frame.sequence > last[2]:
            print(f"{frame.node} {frame.sequence}:{shown(frame)}", flush=True)
            last = name


def show_ports(ports: list[str]) -> int:
    """Print a line for each port; return 1 if there is none."""
    found = plugged_in()
    titles = {each.port: each.title for each in found}
    names = ports or list(titles)
    if not names:
        print("no board is plugged in at a USB port")
        return 1
    for name in names:
        title = f"{titles[name]}: " if name in titles else ""
        print(f"{name}  {title}", end="", flush=True)  # the rest may take a while
        print(runs_on(Port(name)))
    return 0


def only_port(named: str | None) -> str:
    """Return the named port, or the only one; raise FlashingError."""
    if named is not None:
        return named
    found = [each.port for each in plugged_in()]
    if len(found) == 1:
        return found[0]
    if found:
        raise FlashingError(f"several boards are plugged in; --port names one: {', '.join(found)}")
    raise FlashingError("no board is plugged in at a USB port; --port names another port")


def write_new(board: str, sensors: list[str], name: str, file: Path) -> int:
    """Write the file; raise TidegateError for an unknown word, and if the file exists."""
    _check("--board", board, BOARDS)
    for each in sensors:
        _check("--sensor", each, SENSORS)
    try:
        text = new_settings(board, sensors, node_name(name), str(file))
    except ValueError as error:
        raise TidegateError(f"--name {name!r}: {error}") from error
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError as error:
        raise TidegateError(f"{file} exists: name another file, or remove it") from error
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror}") from error
    print(f"{file}: settings of {name}; copy them to the board: tidegate firmware flash {file}")
    return 0


def _check(option: str, word: str, known: Iterable[str]) -> None:
    if word not in known:
        like = did_you_mean(word, known)
        raise TidegateError(f"{option} {word!r}: one of {', '.join(known)}{like}")
