"""What a person would want to have been told: what is kept, counted, ended and shown."""

import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from gateway.app.query import events as module
from gateway.app.query.events import MAXIMUM_SUBJECTS, OTHERS, REPEATED_MS
from gateway.config.load import load
from gateway.mqtt.packets import Connect, Publish
from gateway.storage.engine import database as database_module
from gateway.storage.engine.database_file import ReadOnlyError
from gateway.storage.state import events as rows_module
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients

CONFIG = """
[[listener]]
port = {port}
acl_file = "{acl}"
[[listener]]
port = {local}
"""


class Runs:
    """Runs of one gateway, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.port, self.local = free_port(), free_port()
        (folder / "acl").write_text("user anna\ntopic readwrite mine/#\n")
        self.file = folder / "gateway.toml"
        self.file.write_text(
            CONFIG.format(port=self.port, local=self.local, acl=folder / "acl"), "utf-8"
        )
        self.data = folder / "data"

    async def start(self, stack: AsyncExitStack) -> tuple[Gateway, Operator]:
        gateway = Gateway(load(self.file), self.data, stack)
        await gateway.start()
        return gateway, await Operator.open(self.local)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def reported(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["kind"], row["subject"]) for row in answer["rows"]]


async def test_starts_and_stops_say_how_the_run_before_ended(runs: Runs) -> None:
    texts = []
    for run in range(4):
        async with AsyncExitStack() as stack:
            _, operator = await runs.start(stack)
            answer = await operator.ask("events", limit=1)
            (row,) = answer["rows"]
            assert (row["kind"], row["until"]) == ("start", None)
            texts.append(row["text"].rpartition(" started")[2])
            await operator.close()
        if run == 1:  # as a power cut leaves it
            with closing(sqlite3.connect(runs.data / "tidegate.db")) as database:
                database.execute("DELETE FROM events WHERE kind = 'stop'")
                database.execute("UPDATE events SET until = NULL")
                database.commit()
    killed = " after a power cut, a crash or a kill: the run before did not stop"
    assert texts == ["", " after a stop", killed, " after a stop"]
    async with AsyncExitStack() as stack:
        _, operator = await runs.start(stack)
        rows = (await operator.ask("events"))["rows"]
        assert [row["until"] for row in rows[1:]].count(None) == 0
        assert rows[1]["text"] == "stopped as requested"
        await operator.close()


async def test_alarms_last_from_their_beginning_to_their_end(runs: Runs) -> None:
    async with AsyncExitStack() as stack:
        gateway, operator = await runs.start(stack)
        gateway.alarm("listener", "the file is gone")
        gateway.alarm("listener", "the file is gone and back")
        gateway.alarm("never", "")
        (row,) = (await operator.ask("events", kind="alarm"))["rows"]
        assert (row["subject"], row["text"]) == ("listener", "the file is gone and back")
        assert (row["until"], row["severity"], row["count"]) == (None, "warning", 1)
        gateway.alarm("listener", "")
        (row,) = (await operator.ask("events", kind="alarm"))["rows"]
        assert row["until"] >= row["time"]
        gateway.alarm("listener", "again")
        assert (await operator.ask("events", kind="alarm"))["total"] == 2
        await operator.close()


async def test_who_is_refused_or_denied_is_told_with_why(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        _, operator = await runs.start(stack)
        clients = Clients(runs.port)
        anna = await clients.connect("anna-1", username="anna")
        for number in (1, 2):
            await anna.send(Publish("other", b"x", 1, packet_id=number))
            await anna.receive()
        assert await anna.subscribe("secret/#") == 0x87
        stranger = await clients.open()
        await stranger.send(Connect("$CONTROL"))
        await stranger.until_closed()
        rows = (await operator.ask("events", kind="denied"))["rows"]
        (denied,) = rows
        assert (denied["subject"], denied["count"]) == ("anna-1", 3)
        assert denied["text"] == "of user 'anna' may not read 'secret/#'"
        lines = [line for line in caplog.messages if "may not" in line]
        assert lines == ["client 'anna-1' of user 'anna' may not write 'other'"]  # once an hour
        (refused,) = (await operator.ask("events", kind="refused"))["rows"]
        assert refused["subject"] == "$CONTROL"
        assert "is a name of the gateway's own" in refused["text"]
        assert refused["text"].startswith("at 127.0.0.1:")
        await clients.close()
        await operator.close()


async def test_flapping_clients_shared_identifiers_and_orders_are_told(runs: Runs) -> None:
    async with AsyncExitStack() as stack:
        gateway, operator = await runs.start(stack)
        clients = Clients(runs.local)
        for _ in range(6):
            client = await clients.connect("flaps")
            await client.send_bytes(b"\xe0\x00")
            await client.until_closed()
        for _ in range(4):
            await clients.connect("twin")
        await operator.ask("client/disconnect", id="twin", reason="too loud")
        await until(lambda: "twin" not in gateway.broker.clients)
        answer = await operator.ask("events")
        assert reported(answer) == [
            ("ended", "twin"),
            ("order", "client 'twin': too loud"),
            ("shared", "twin"),
            ("flapping", "flaps"),
            ("start", "gateway"),
        ]
        assert answer["rows"][0]["text"].endswith(": too loud (0x98)")
        text = answer["rows"][1]["text"]
        assert text.startswith("requested by client 'operator' at 127.0.0.1:")
        newer = await operator.ask("events", after=answer["rows"][1]["id"])
        assert reported(newer) == [("ended", "twin")]
        assert newer["last"] == answer["last"]
        late = answer["time"] + 3_600_000
        assert reported(await operator.ask("events", since=late)) == [("start", "gateway")]
        page = await operator.ask("events", offset=2, limit=2)
        assert (reported(page)[0][0], page["next"], page["total"]) == ("shared", 4, 5)
        await clients.close()
        await operator.close()


async def test_many_who_do_the_same_are_one_event(runs: Runs) -> None:
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(runs.file), runs.data, stack)
        clock = gateway.clock = ManualClock()
        await gateway.start()
        operator = await Operator.open(runs.local)
        for number in range(MAXIMUM_SUBJECTS + 20):
            gateway.event.once("refused", f"client-{number}", "wrong password")
        answer = await operator.ask("events", kind="refused")
        assert answer["total"] == MAXIMUM_SUBJECTS + 1
        assert (answer["rows"][0]["subject"], answer["rows"][0]["count"]) == (OTHERS, 20)
        clock.step(REPEATED_MS / 1000 + 1)
        gateway.event.once("refused", "client-0", "wrong password")
        gateway.event.once("refused", "client-0", "wrong again")
        answer = await operator.ask("events", kind="refused", limit=1)
        assert answer["total"] == MAXIMUM_SUBJECTS + 2
        assert (answer["rows"][0]["text"], answer["rows"][0]["count"]) == ("wrong again", 2)
        await operator.close()


async def test_the_newest_are_kept(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "MAXIMUM_EVENTS", 5)
    async with AsyncExitStack() as stack:
        gateway, operator = await runs.start(stack)
        for number in range(10):
            gateway.event.once("order", f"order {number}", "")
        answer = await operator.ask("events")
        assert (answer["total"], answer["last"]) == (5, 11)
        assert answer["rows"][0]["subject"] == "order 9"
        await operator.close()


async def test_a_disk_that_refuses_does_not_keep_the_answer(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMIT_SECONDS", 0.05)
    async with AsyncExitStack() as stack:
        gateway, operator = await runs.start(stack)
        monkeypatch.setattr(gateway.writer, "hand_over", lambda: None)
        gateway.event.once("order", "never written", "")
        assert "rows" in await operator.ask("events")
        monkeypatch.undo()
        await operator.close()


async def test_events_in_memory_are_told_as_well(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(*_: object) -> None:
        raise ReadOnlyError("read-only")

    monkeypatch.setattr(database_module, "prepare", prepare)
    async with AsyncExitStack() as stack:
        gateway, operator = await runs.start(stack)
        assert gateway.database.in_memory
        kinds = {row["kind"] for row in (await operator.ask("events"))["rows"]}
        assert {"start", "alarm"} <= kinds
        await operator.close()
