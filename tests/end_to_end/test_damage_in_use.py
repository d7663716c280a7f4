"""The database goes bad under a running gateway: it says so, ends, and the next start salvages."""

import json
from pathlib import Path

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients
from tests.support.waiting import SECONDS

STAYS = Properties(session_expiry_interval=3600)

MESSAGES = 1_000
PAYLOAD = 8_000
"""Bytes of each: together they are many times what SQLite caches."""

SOUND = 64 * 4096
"""Bytes at the file's begin that stay as they are; the messages are behind them."""

ALARM = "$SYS/broker/tidegate/alarm/database"


async def leave_session(gateway: GatewayProcess) -> None:
    """Leave a session behind that is owed messages."""
    clients = Clients(gateway.port)
    absent = await clients.connect("s", clean_start=False, properties=STAYS)
    await absent.subscribe("t", 1)
    await absent.close()
    publisher = await clients.connect("p")
    for number in range(1, MESSAGES + 1):
        await publisher.send(Publish("t", bytes(PAYLOAD), 1, packet_id=number))
        answer = await publisher.take(PubAck)
        assert answer.reason_code < 0x80
    await publisher.close()


def spoil(file: Path) -> None:
    """Write over all but the begin of the file."""
    size = file.stat().st_size
    assert size > 2 * SOUND
    with file.open("r+b", buffering=0) as database:
        database.seek(SOUND)
        database.write(b"\xff" * (size - SOUND))


async def test_it_ends_and_the_next_start_salvages(gateway: GatewayProcess) -> None:
    await leave_session(gateway)
    assert gateway.stop() == 0  # which brings everything from the log into the file
    gateway.start()
    clients = Clients(gateway.port)
    watcher = await clients.connect("w")
    await watcher.subscribe(ALARM)
    spoil(gateway.data / "tidegate.db")

    absent = await clients.connect("s", clean_start=False, properties=STAYS)
    alarm = await watcher.take(Publish)
    assert "its next start sets the database aside" in json.loads(alarm.payload)["text"]
    assert gateway.process is not None
    assert gateway.process.wait(SECONDS) == 3
    gateway.process = None
    log = gateway.log()
    assert log.splitlines()[-1].startswith("tidegate: ")
    assert log.endswith("; start again\n")
    assert "Traceback" not in log
    await absent.close()
    await watcher.close()

    gateway.start()
    clients = Clients(gateway.port)
    watcher = await clients.connect("w")
    await watcher.subscribe(ALARM)
    alarm = await watcher.take(Publish)
    assert "was damaged and is set aside" in json.loads(alarm.payload)["text"]
    assert list(gateway.data.glob("tidegate.db.corrupt-*"))
    await watcher.close()
    assert gateway.stop() == 0
