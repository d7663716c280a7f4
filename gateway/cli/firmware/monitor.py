"""`tidegate firmware monitor`: what a node sends, as it comes."""

import argparse
import contextlib

from gateway.cli.firmware.borrowing import borrowed
from gateway.cli.firmware.flash import shown
from gateway.cli.firmware.ports import only_port
from gateway.flashing.first_reading import Listener


def monitor(options: argparse.Namespace) -> int:
    """Print each frame once, and text between frames; nothing is acknowledged."""
    with (
        borrowed(options, only_port(options.port)) as port,
        contextlib.closing(Listener(port)) as listener,
    ):
        _show(listener, options.seconds)
    return 0


def _show(listener: Listener, seconds: float | None) -> None:
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
