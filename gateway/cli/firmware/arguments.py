"""The command line of `tidegate firmware`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.parser import add_user_options
from gateway.cli.user import CONFIG

if TYPE_CHECKING:
    from gateway.cli.parser import Commands

SETTINGS = Path("node.toml")
BOARD_WORDS = "such as pico, pico_w or esp32"
SENSOR_WORDS = "such as bme280 or simulated; give it once for each"


def add_firmware(commands: "Commands") -> None:
    """Add the command `firmware`."""
    firmware = commands.add_parser("firmware", help="sensor nodes: put them onto boards")
    actions = firmware.add_subparsers(required=True, metavar="ACTION")
    _add_ports(actions)
    _add_new(actions)
    _add_flash(actions)
    _add_monitor(actions)
    _add_update(actions)


def _add_ports(actions: "Commands") -> None:
    ports = actions.add_parser("ports", help="list what is plugged in, and what runs on it")
    ports.add_argument("ports", metavar="PORT", nargs="*", help="look at these instead")
    ports.set_defaults(command=_ports)


def _add_new(actions: "Commands") -> None:
    new = actions.add_parser("new", help="write a settings file for a node, with comments")
    new.add_argument("--board", required=True, help=BOARD_WORDS)
    new.add_argument("--sensor", required=True, action="append", help=SENSOR_WORDS)
    new.add_argument("--name", default="node1", help="the node's name (node1)")
    new.add_argument("file", metavar="FILE", nargs="?", type=Path, default=SETTINGS)
    new.set_defaults(command=_new)


def _add_flash(actions: "Commands") -> None:
    flash = actions.add_parser("flash", help="put the node onto a board, and read a first reading")
    flash.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, default=SETTINGS, help="settings (node.toml)"
    )
    flash.add_argument("--port", help="of the board; needed if several are plugged in")
    flash.add_argument(
        "--micropython",
        type=Path,
        metavar="IMAGE",
        help="install MicroPython first: a .uf2 file, or a .bin file for an ESP32",
    )
    flash.add_argument(
        "--drive", type=Path, metavar="DIR", help="where the board's UF2 drive is mounted"
    )
    flash.add_argument(
        "--no-stub", action="store_true", help="let an ESP32's own loader write, more slowly"
    )
    flash.add_argument("--replace", action="store_true", help="take the place of another main.py")
    flash.add_argument("--source", action="store_true", help="copy .py files, do not compile")
    _add_gateway(flash)
    flash.set_defaults(command=_flash)


def _add_monitor(actions: "Commands") -> None:
    monitor = actions.add_parser("monitor", help="show what a node sends, until Ctrl-C")
    monitor.add_argument("--port", help="of the board; needed if several are plugged in")
    monitor.add_argument("--seconds", type=float, metavar="N", help="end after so many")
    _add_gateway(monitor)
    monitor.set_defaults(command=_monitor)


def _add_update(actions: "Commands") -> None:
    update = actions.add_parser("update", help="put this version's node onto boards that have one")
    which = update.add_mutually_exclusive_group(required=True)
    which.add_argument("ports", metavar="PORT", nargs="*", default=[])
    which.add_argument(
        "--all", action="store_true", help="all that are plugged in, and the configuration's"
    )
    update.add_argument(
        "--config", type=Path, default=CONFIG, metavar="FILE", help=f"of the gateway ({CONFIG})"
    )
    update.add_argument("--source", action="store_true", help="copy .py files, do not compile")
    _add_gateway(update)
    update.set_defaults(command=_update)


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gateway",
        dest="url",
        metavar="URL",
        help="is asked for the port if it has it open",
    )
    add_user_options(parser)


def _ports(options: argparse.Namespace) -> int:
    from gateway.cli.firmware.flash import show_ports

    return show_ports(options.ports)


def _new(options: argparse.Namespace) -> int:
    from gateway.cli.firmware.flash import write_new

    return write_new(options.board, options.sensor, options.name, options.file)


def _flash(options: argparse.Namespace) -> int:
    from gateway.cli.firmware.flash import command_flash

    return command_flash(options)


def _monitor(options: argparse.Namespace) -> int:
    from gateway.cli.firmware.flash import monitor

    return monitor(options)


def _update(options: argparse.Namespace) -> int:
    from gateway.cli.firmware.flash import command_update

    return command_update(options)
