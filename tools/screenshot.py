"""Write into docs/pictures/ what the terminal UI shows of a gateway that lost an uplink."""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.ports import free_port
from tests.support.processes.screen import press, until
from tests.support.waiting import listens
from tests.support.waiting import until as wait_until
from tools.film import svg
from tui.address import parse_address
from tui.app import TidegateApp
from tui.gateway_client import GatewayClient
from tui.queries import EVENTS

ROOT = Path(__file__).resolve().parent.parent
CONFIG = """
[gateway]
id = "boiler-house"
[broker]
remembered_topics = 1000
[history]
keep = "1h"
[[listener]]
host = "127.0.0.1"
port = {port}
[[simulator]]
node = "barn1"
port = "{folder}/barn1.tty"
interval = 1.0
[[serial]]
port = "{folder}/barn1.tty"
format = "frames"
[[channel]]
name = "jobs"
filter = "orders/#"
[[uplink]]
name = "cloud"
directory = "{folder}/landing"
[[uplink.rule]]
topic = "sensors/+/temperature/#"
where = "payload.value > 21"
[[uplink]]
name = "plant"
url = "mqtt://127.0.0.1:{nobody}"
[[uplink.rule]]
topic = "sensors/#"
where = "DEADBAND(payload.value, 0.5)"
"""
PICTURES = (
    ("tui", (100, 32), ()),
    ("tui-now", (160, 50), ()),
    ("tui-topics", (100, 24), ("2", "down", "down", "down")),
    ("tui-queues", (100, 30), ("4", "down")),
)
"""each picture's name, its columns and lines, and the keys before it"""

SECONDS = 90
"""How long the gateway runs before the first picture: plots want something to show."""
WATCHED = 8
"""How long a screen is watched once its figures are known."""


def main() -> None:
    """Start the gateway on a port of its own, in a folder that nobody else has."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "gateway.toml")
        config.write_text(CONFIG.format(port=port, folder=folder, nobody=free_port()))
        command = [Path(sys.executable).with_name("tidegate"), "run", "--config", config]
        gateway = subprocess.Popen(
            [*command, "--data", Path(folder, "data")], stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: listens(port), "the gateway listens")
            time.sleep(SECONDS)
            for name, size, keys in PICTURES:
                shown = asyncio.run(picture(f"mqtt://127.0.0.1:{port}", size, keys))
                (ROOT / "docs/pictures" / f"{name}.svg").write_text(shown, encoding="utf-8")
        finally:
            gateway.terminate()
            gateway.wait()


async def picture(url: str, size: tuple[int, int], keys: tuple[str, ...]) -> str:
    """Return what is shown of the gateway at `url` after these keys, as SVG."""
    app = TidegateApp(GatewayClient(parse_address(url)))
    async with app.run_test(size=size) as pilot:
        session = app.session
        await until(lambda: session.state.incoming() is not None and session.queries.get(EVENTS).at)
        await press(pilot, *keys)
        await asyncio.sleep(WATCHED)
        return svg([list(app.screen._compositor.render_strips())], "tidegate tui")  # noqa: SLF001


if __name__ == "__main__":
    main()
