"""Write into docs/tui.svg what the terminal UI shows of the running demonstration."""

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.ports import free_port
from tui.address import parse_address
from tui.app import TidegateApp

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "tui.svg"

SIZE = (100, 32)
"""Columns and lines: what a reader of the README has room for."""

SECONDS = 20
"""How long the screen watches before the picture: its rates are of ten seconds."""


def main() -> None:
    """Start the gateway on a port of its own, in a folder that nobody else has."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "var").mkdir()
        gateway = subprocess.Popen(
            [
                *(Path(sys.executable).with_name("tidegate"), "run", "--data", "var"),
                *("--config", ROOT / "examples" / "demo.toml", "--port", str(port)),
            ],
            cwd=folder,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(port)
            shown = asyncio.run(picture(f"mqtt://127.0.0.1:{port}"))
            PICTURE.write_text(shown, encoding="utf-8")
        finally:
            gateway.terminate()
            gateway.wait()


def wait_for(port: int) -> None:
    """Return once something listens at `port`; raise OSError if nothing does in time."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


async def picture(url: str) -> str:
    """Return the dashboard of the gateway at `url` as SVG."""
    app = TidegateApp(parse_address(url))
    async with app.run_test(size=SIZE):
        await asyncio.sleep(SECONDS)
        return app.export_screenshot(title="tidegate tui")


if __name__ == "__main__":
    main()
