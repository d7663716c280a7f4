"""Records a real gateway with traffic, an outage, a channel and a bridge for the snapshot tests.

`python -m tests.tui.snapshots.make_recording` writes `session.jsonl` beside this file, in 40 s.
"""

import asyncio
import base64
import json
import tempfile
import threading
import time
from pathlib import Path

from paho.mqtt.publish import single

from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.screen import press, shown
from tests.tui.conftest import CONFIG
from tui.address import Address
from tui.app import TidegateApp
from tui.gateway_client import GatewayClient
from tui.record import Recorder

FILE = Path(__file__).with_name("session.jsonl")
BRIDGE = """
[[simulator]]
node = "barn1"
port = "{folder}/barn1.tty"
interval = 1.0
[[serial]]
port = "{folder}/barn1.tty"
format = "frames"
"""
ROUNDS = 12.0
"""seconds of figures that are kept: rates are of ten"""
USUAL = "/srv/tidegate"
"""where the recording says that the gateway's folder is"""
LARGE = 300
"""bytes of a line from which a message is no figure: only the last is kept"""


def main() -> None:
    """Record, and keep what a snapshot needs."""
    with tempfile.TemporaryDirectory() as folder:
        config = CONFIG.format(folder=folder, nobody=free_port()) + BRIDGE.format(folder=folder)
        gateway = GatewayProcess(Path(folder), config)
        gateway.start()
        ended = threading.Event()
        sender = threading.Thread(target=_send, args=(gateway.port, ended))
        sender.start()
        time.sleep(15)
        asyncio.run(_record(gateway.port, Path(folder, "whole")))
        ended.set()
        sender.join()
        gateway.kill()
        lines = Path(folder, "whole").read_text().splitlines()
    lines = [_placed(each, folder) for each in lines]
    FILE.write_text("".join(f"{each}\n" for each in _thinned(lines)))


def _send(port: int, ended: threading.Event) -> None:
    count = 0
    while not ended.wait(1.0):
        count += 1
        value = json.dumps({"value": 18 + count % 9, "unit": "°C"}, ensure_ascii=False)
        single("sensors/attic/temperature", value, qos=1, port=port)
        single("work/1", str(count), qos=1, port=port)


async def _record(port: int, file: Path) -> None:
    with file.open("w") as opened:
        application = TidegateApp(
            GatewayClient(Address("127.0.0.1", port)), recorder=Recorder(opened)
        )
        async with application.run_test(size=(120, 36)) as pilot:
            await shown(pilot, "barn ● up")
            for key in "234561":
                await press(pilot, key)
                await asyncio.sleep(3)


def _placed(line: str, folder: str) -> str:
    """Return a line in which the gateway lay where one usually does."""
    at, kind, *fields = json.loads(line)
    if kind in ("message", "answer"):
        place = 1
        payload = base64.b64decode(fields[place])
        payload = payload.replace(folder.encode(), USUAL.encode())
        fields[place] = base64.b64encode(payload).decode()
    return json.dumps([at, kind, *fields])


def _thinned(lines: list[str]) -> list[str]:
    """Return links, the last answer of each query, and the last seconds of figures."""
    fields = [json.loads(each) for each in lines]
    end = max(each[0] for each in fields)
    last = {(each[1], each[2]): index for index, each in enumerate(fields)}
    return [
        line
        for index, (line, (at, kind, name, *_)) in enumerate(zip(lines, fields, strict=True))
        if kind in ("link", "subscribed")
        or last[kind, name] == index
        or (kind == "message" and at > end - ROUNDS and len(line) < LARGE)
    ]


if __name__ == "__main__":
    main()
