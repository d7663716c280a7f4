"""The command line of `tidegate firmware`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.parser import add_user_options
from gateway.cli.user import CONFIG

if TYPE_CHECKING:
    from gateway.cli.parser import Commands

SETTINGS = Path("node.toml")
BOARD_WORDS = "board, such as pico, pico_w or esp32"
SENSOR_WORDS = "driver, such as bme280 or simulated; once for each sensor"


def add_firmware(commands: "Commands") -> None:
    """Add the command `firmware`."""
    firmware = commands.add_parser("firmware", help="install sensor nodes on boards")
    actions = firmware.add_subparsers(required=True, metavar="ACTION")
    _add_ports(actions)
    _add_new(actions)
    _add_flash(actions)
    _add_monitor(actions)
    _add_update(actions)


def _add_ports(actions: "Commands") -> None:
    ports = actions.add_parser("ports", help="list boards and what runs on each")
    ports.add_argument("ports", metavar="PORT", nargs="*", help="only these ports")
    ports.set_defaults(command=_ports)


def _add_new(actions: "Commands") -> None:
    new = actions.add_parser("new", help="write a settings file for a node, with comments")
    new.add_argument("--board", required=True, help=BOARD_WORDS)
    new.add_argument("--sensor", required=True, action="append", help=SENSOR_WORDS)
    new.add_argument("--name", default="node1", help="name of the node (node1)")
    new.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        default=SETTINGS,
        help="settings file to write (node.toml)",
    )
    new.set_defaults(command=_new)


def _add_flash(actions: "Commands") -> None:
    flash = actions.add_parser(
        "flash", help="install the node on a board and print its first reading"
    )
    flash.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        default=SETTINGS,
        help="settings file (node.toml)",
    )
    flash.add_argument("--port", help="port of the board; required if there are several boards")
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
        "--no-stub", action="store_true", help="write by the ESP32's own loader, which is slower"
    )
    flash.add_argument("--replace", action="store_true", help="replace another program's main.py")
    flash.add_argument(
        "--source", action="store_true", help="copy sources instead of compiled files"
    )
    _add_gateway(flash)
    flash.set_defaults(command=_flash)


def _add_monitor(actions: "Commands") -> None:
    monitor = actions.add_parser("monitor", help="show what a node sends, until Ctrl-C")
    monitor.add_argument("--port", help="port of the board; required if there are several boards")
    monitor.add_argument("--seconds", type=float, metavar="N", help="seconds until the end")
    _add_gateway(monitor)
    monitor.set_defaults(command=_monitor)


def _add_update(actions: "Commands") -> None:
    update = actions.add_parser("update", help="install this version on boards that have a node")
    which = update.add_mutually_exclusive_group(required=True)
    which.add_argument("ports", metavar="PORT", nargs="*", default=[], help="ports of the boards")
    which.add_argument(
        "--all",
        action="store_true",
        help="all boards on ports of this machine and of the configuration",
    )
    update.add_argument(
        "--config",
        type=Path,
        default=CONFIG,
        metavar="FILE",
        help=f"configuration file of the gateway ({CONFIG})",
    )
    update.add_argument(
        "--source", action="store_true", help="copy sources instead of compiled files"
    )
    _add_gateway(update)
    update.set_defaults(command=_update)


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gateway",
        dest="url",
        metavar="URL",
        help="URL of the gateway, which releases the port",
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
