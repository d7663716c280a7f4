"""Rules, outbox and links change while messages pass."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.mqtt.packets import Publish
from gateway.storage.history.recorded import is_recorded
from tests.app.reload.conftest import Changing
from tests.app.reload.test_broker_part import code_of, next_on
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker

RULE = '[[uplink.rule]]\ntopic = "{}"\n'


def landed(folder: Path) -> list[tuple[str, int]]:
    """Return the stream and number of each landed message."""
    lines = [
        json.loads(line)
        for file in sorted(folder.glob("*/*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    return sorted((each["stream"], each["seq"]) for each in lines)


async def test_numbers_go_on_and_rules_keep_what_they_remember(
    changing: Changing, tmp_path: Path
) -> None:
    uplink = f'[uplink]\ndirectory = "{tmp_path / "landing"}"\n'
    changes = RULE.format("s/#") + 'where = "CHANGED(payload.value)"\n'
    await changing.start(uplink + changes)
    client = await changing.clients.connect("c")
    for value in (b'{"value":1}', b'{"value":1}', b'{"value":2}'):
        assert await code_of(client, "s/1", value) in (0, 0x10)
    before = RULE.format("t/#") + 'stream = "other"\nwhere = "DEADBAND(payload.value, 5)"\n'
    keys = await changing.changed(uplink + before + changes)
    assert any(key.startswith("uplink.rule[0]") for key in keys)
    (first, second) = (await changing.operator.ask("rules"))["rows"]
    assert (first["topic"], first["counters"]["evaluated"]) == ("t/#", 0)
    assert (second["topic"], second["counters"]["evaluated"]) == ("s/#", 3)
    assert second["counters"]["passed"] == 2
    await code_of(client, "s/1", b'{"value":2}')  # remembered: it has not changed
    for value in (b'{"value":1}', b'{"value":9}', b'{"value":9}'):
        await code_of(client, "t/1", value)
    await changing.changed(uplink + changes)
    await code_of(client, "t/1", b'{"value":99}')  # nobody takes it
    await code_of(client, "s/1", b'{"value":3}')
    await changing.changed(uplink + before + changes)
    await code_of(client, "t/1", b'{"value":1}')
    await code_of(client, "t/1", b'{"value":50}')
    await changing.changed(uplink + RULE.format("#"))
    await code_of(client, "z", b"1")
    await changing.changed(f'[uplink]\ndirectory = "{tmp_path / "other"}"\n')
    expected = [("main", number) for number in (1, 3, 5, 6)]
    expected += [("other", number) for number in (1, 2, 4, 5)]
    await until(lambda: landed(tmp_path / "landing") == expected)  # its files are finished


async def test_a_folder_becomes_another_and_then_a_broker(
    changing: Changing, tmp_path: Path
) -> None:
    fleet = FleetBroker()
    await fleet.start()
    one, other = tmp_path / "one", tmp_path / "other"
    await changing.start(f'[uplink]\ndirectory = "{one}"\n')
    client = await changing.clients.connect("c")
    await code_of(client, "sensors/1")
    await changing.changed(f'[uplink]\ndirectory = "{other}"\n')
    await until(lambda: landed(one) == [("main", 1)])
    await code_of(client, "sensors/2")
    url = f'[uplink]\nurl = "mqtt://127.0.0.1:{fleet.port}"\n'
    await changing.changed(url)
    await until(lambda: landed(other) == [("main", 2)])
    await code_of(client, "sensors/3")
    await until(lambda: len(fleet.data) == 1)
    assert dict(fleet.data[0].properties.user_properties)["seq"].endswith(".main.3")
    await changing.changed(
        url + 'budget = "1MB/day"\nwindow = 9\n[[uplink.down]]\ntopic = "d/#"\nlocal = "x/{2+}"\n'
    )
    await until(lambda: len(fleet.connects) == 2)
    await client.subscribe("x/#")
    await until(
        lambda: changing.gateway.counters.values.get("tidegate/uplink/state") == "connected"
    )
    fleet.send(Publish("d/1", b"down"))
    assert (await next_on(client, "x/1")).payload == b"down"
    await changing.changed(
        url + 'budget = "2MB/day"\n[[uplink.down]]\ntopic = "d/#"\nlocal = "y/{2+}"\n'
    )
    await until(lambda: len(fleet.connects) == 3)
    await changing.changed(url)
    await until(lambda: len(fleet.connects) == 4)
    await changing.changed(url + RULE.format("sensors/#"))  # rules alone keep the link
    await code_of(client, "sensors/4")
    await until(lambda: len(fleet.data) == 2)
    assert len(fleet.connects) == 4
    await changing.changed(url + RULE.format("sensors/#") + 'target = "t/{2}"\n')
    await until(lambda: len(fleet.connects) == 5)
    await fleet.stop()


async def test_renewed_credentials_make_the_link_anew(changing: Changing, tmp_path: Path) -> None:
    fleet = FleetBroker()
    await fleet.start()
    secret = tmp_path / "secret"
    secret.write_text("one\n")
    secret.chmod(0o600)
    url = f'[uplink]\nurl = "mqtt://127.0.0.1:{fleet.port}"\nusername = "barn"\n'
    await changing.start(url + f'password_file = "{secret}"\n')
    await until(lambda: len(fleet.connects) == 1)
    assert (await changing.reload())["files"] == []
    secret.write_text("another\n")
    assert (await changing.reload())["files"] == ["uplink: its credentials are read again"]
    await until(lambda: len(fleet.connects) == 2)
    assert fleet.connects[1].password == b"another"
    await fleet.stop()


async def test_bounds_of_what_waits_change(changing: Changing) -> None:
    fleet = '[uplink]\nurl = "mqtt://127.0.0.1:9"\n'
    rules = RULE.format("sensors/#") + RULE.format("alarms/#") + 'stream = "alarms"\n'
    await changing.start(fleet + rules)
    client = await changing.clients.connect("c")
    for number in range(10):
        await code_of(client, f"sensors/{number}")
        await code_of(client, "alarms/1")
    (row,) = (await changing.operator.ask("queues", kind="uplink"))["rows"]
    assert row["depth"] == 20
    streams = '[[uplink.stream]]\nname = "alarms"\nmode = "latest"\npriority = 9\n'
    bounds = '[outbox]\nmaximum_messages = 12\nwhen_full = "drop-oldest"\n'
    await changing.changed(fleet + rules + streams + bounds)
    counters = changing.gateway.counters

    def rows() -> int:
        counters.refresh()
        return int(counters.count("tidegate/outbox/rows"))

    await until(lambda: rows() == 12)  # the oldest rows are read first
    for _ in range(5):
        await code_of(client, "alarms/1")
    assert counters.count("tidegate/outbox/evicted/latest") == 4
    await changing.changed(fleet + rules + '[outbox]\nwhen_full = "reject"\nmaximum_messages = 1\n')
    assert await code_of(client, "sensors/1") == 0x97
    await changing.changed(fleet + rules)
    assert await code_of(client, "sensors/1") in (0, 0x10)


def two(folder: Path, *, more: str = "") -> str:
    """Return two uplinks with a rule each, and one of both."""
    more = more or f'directory = "{folder / "b"}"'
    return (
        f'[[uplink]]\nname = "a"\ndirectory = "{folder / "a"}"\n'
        + RULE.format("a/#")
        + RULE.format("both/#")
        + 'uplink = ["a", "b"]\n'
        + f'[[uplink]]\nname = "b"\n{more}\n'
        + RULE.format("b/#")
    )


async def test_uplinks_come_beside_others_and_go(changing: Changing, tmp_path: Path) -> None:
    alone = f'[uplink]\nname = "a"\ndirectory = "{tmp_path / "a"}"\n' + RULE.format("a/#")
    await changing.start(alone)
    client = await changing.clients.connect("c")
    await code_of(client, "a/1")
    keys = await changing.changed(two(tmp_path))
    assert any(key.startswith("uplink") for key in keys)
    for topic in ("a/2", "b/1", "both/1"):
        assert await code_of(client, topic) == 0
    assert [each["name"] for each in (await changing.operator.ask("status"))["uplinks"]] == [
        "a",
        "b",
    ]
    values = changing.gateway.counters.values
    await until(lambda: values.get("tidegate/uplink/b/state") == "connected")
    answer = await changing.reload(alone)
    (line,) = answer["files"]
    assert line.startswith("uplink b is removed: ")
    assert (answer["restart"], answer["refused"]) == ([], [])
    assert "tidegate/uplink/b/state" not in values
    await code_of(client, "a/3")
    await changing.changed(alone.replace('/a"', '/end"'))
    await until(lambda: landed(tmp_path / "b") == [("main", 3), ("main", 4)])
    expected = [("main", number) for number in (1, 2, 4, 5)]
    await until(lambda: landed(tmp_path / "a") == expected)
    await changing.changed("")
    await code_of(client, "a/4")  # nobody takes it
    await changing.changed(alone.replace('/a"', '/again"'))
    await code_of(client, "a/5")
    await changing.changed(alone)
    await until(lambda: landed(tmp_path / "again") == [("main", 6)])


async def waiting(changing: Changing) -> dict[str, int]:
    """Return how many messages wait for each uplink."""
    rows = (await changing.operator.ask("queues", kind="uplink"))["rows"]
    return {each["name"]: each["depth"] for each in rows}


async def test_what_waits_finds_its_uplink_and_that_of_one_that_goes_the_first(
    changing: Changing, tmp_path: Path
) -> None:
    """Also by the names on disk, as the next start reads them."""
    nobody = 'url = "mqtt://127.0.0.1:9"'
    text = two(tmp_path, more=nobody).replace(
        f'directory = "{tmp_path / "a"}"', nobody.replace(":9", ":90")
    )
    await changing.start(text)
    client = await changing.clients.connect("c")
    for number, topic in enumerate(("a/1", "b/1", "both/1") * 20):
        assert await code_of(client, topic, str(number).encode()) == 0
    changed = text.replace(
        '[[uplink]]\nname = "a"',
        '[[uplink]]\nname = "c"\nurl = "mqtt://127.0.0.1:99"\n[[uplink]]\nname = "a"',
    )
    await changing.changed(changed)
    assert await waiting(changing) == {"c": 0, "a": 40, "b": 40}
    assert await code_of(client, "both/1") == 0
    gone = await changing.reload(
        changed.replace('"a", "b"', '"a"').partition('[[uplink]]\nname = "b"')[0]
    )
    assert gone["files"] == [
        "uplink b is removed: 20 messages that waited only for it are sent by c"
    ]
    assert await waiting(changing) == {"c": 20, "a": 41}
    await changing.gateway.writer.wait_for(changing.gateway.writer.batch)
    count = "SELECT uplinks, count(*) FROM outbox GROUP BY uplinks ORDER BY uplinks"
    rows = await changing.gateway.database.reader.query(count, (), list)
    assert rows == [(None, 20), (",a,", 41)]
    alone = await changing.reload(
        f'[uplink]\nname = "a"\ndirectory = "{tmp_path / "all"}"\n' + RULE.format("a/#")
    )
    assert alone["files"] == [
        "uplink c is removed: 20 messages that waited only for it are sent by a"
    ]
    await changing.changed(f'[uplink]\nname = "a"\ndirectory = "{tmp_path / "end"}"\n')
    await until(lambda: len(landed(tmp_path / "all")) == 61)
    assert landed(tmp_path / "all") == [("main", number) for number in range(1, 62)]


async def test_an_uplink_that_much_waits_for_does_not_go(
    changing: Changing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.app.uplink.uplinks.MAXIMUM_REWRITTEN", 2)
    text = two(tmp_path, more='url = "mqtt://127.0.0.1:9"')
    await changing.start(text)
    client = await changing.clients.connect("c")
    for _ in range(3):
        await code_of(client, "b/1")
    before = changing.gateway.configuration
    (refusal,) = (await changing.reload("[uplink]\nname = 'a'\n"))["refused"]
    assert "3 messages wait for a removed one" in refusal["error"]
    assert changing.gateway.configuration is before


async def test_uplinks_stay_while_the_disk_takes_nothing(
    changing: Changing, tmp_path: Path
) -> None:
    await changing.start("[uplink]\nname = 'a'\nurl = 'mqtt://127.0.0.1:9'\n")
    changing.gateway.writer.refuses = "the disk took nothing"
    (refusal,) = (await changing.reload(two(tmp_path)))["refused"]
    assert "while nothing can be written to the disk" in refusal["error"]
    changing.gateway.writer.refuses = ""
    await changing.changed(two(tmp_path))


async def test_a_session_a_pause_and_a_day_go_on_beside_another_uplink(
    changing: Changing, tmp_path: Path
) -> None:
    fleet = FleetBroker()
    await fleet.start()
    one = f'url = "mqtt://127.0.0.1:{fleet.port}"\nbudget = "1MB/day"\n'
    down = '[[uplink.down]]\ntopic = "d/#"\nlocal = "x/{2+}"\n'
    await changing.start(f"[uplink]\n{one}{down}")
    await until(lambda: len(fleet.connects) == 1)
    client = await changing.clients.connect("c")
    await client.subscribe("x/#")
    fleet.send(Publish("d/1", b"first"))
    assert (await next_on(client, "x/1")).payload == b"first"
    more = f'[[uplink]]\nname = "b"\ndirectory = "{tmp_path / "b"}"\n'
    await changing.changed(f'[[uplink]]\nname = "a"\n{one}{down}{more}')
    await until(lambda: len(fleet.connects) == 2)
    assert not fleet.connects[1].clean_start
    assert changing.gateway.counters.count("tidegate/uplink/a/budget_used") > 0
    fleet.send(Publish("d/2", b"second"))
    assert (await next_on(client, "x/2")).payload == b"second"
    assert await code_of(client, "$CONTROL/tidegate/uplink/a", b"pause") == 0
    await changing.changed(f"[uplink]\n{one}")
    values = changing.gateway.counters.values
    await until(lambda: values["tidegate/uplink/state"] == "paused")
    assert await code_of(client, "$CONTROL/tidegate/uplink/b", b"pause") == 0x83
    assert await code_of(client, "$CONTROL/tidegate/uplink", b"resume") == 0
    await until(lambda: len(fleet.connects) == 3)
    await fleet.stop()


async def test_reports_and_recall_come_and_go(changing: Changing, tmp_path: Path) -> None:
    fleet = FleetBroker()
    await fleet.start()
    one = f'[uplink]\nurl = "mqtt://127.0.0.1:{fleet.port}"\n'
    history = '[history]\nkeep = "1h"\n'
    await changing.start(f"{one}reports = false\n")
    client = await changing.clients.connect("c")
    await code_of(client, "sensors/1")
    await until(lambda: len(fleet.data) == 1)
    assert not any(each.topic.endswith("/status") for each in fleet.publishes)
    await changing.changed(f"{one}recall = true\n{history}")
    await until(lambda: any(each.topic.endswith("/status") for each in fleet.publishes))
    await code_of(client, "sensors/2")
    await until(lambda: len(fleet.data) == 2)
    topic = f"tidegate/{changing.gateway.configuration.gateway_id}/control/recall"
    fleet.send(Publish(topic, b'{"stream":"main"}', 1, packet_id=1))
    await until(lambda: len(fleet.data) == 3)
    await changing.changed(f"{one}reports = false\n")
    await until(lambda: len(fleet.connects) == 3)
    await fleet.stop()


async def test_the_history_is_turned_on_and_off(changing: Changing, tmp_path: Path) -> None:
    uplink = f'[uplink]\ndirectory = "{tmp_path / "landing"}"\n' + RULE.format("s/#")
    on = '[history]\nkeep = "1h"\n'
    await changing.start(uplink)
    client = await changing.clients.connect("c")
    await client.subscribe("s/+")
    await code_of(client, "s/1")
    assert "history is off" in (await changing.operator.ask("why", topic="s/1"))["error"]
    assert await changing.changed(uplink + on) == ["history.keep"]
    await code_of(client, "s/1")
    await changing.gateway.writer.wait_for(changing.gateway.writer.batch)
    lines = (await changing.operator.ask("why", topic="s/1"))["lines"]
    assert any("'c'" in line or " c " in line for line in lines), lines
    assert any("main" in line for line in lines), lines
    await changing.changed(uplink)
    await changing.gateway.writer.wait_for(changing.gateway.writer.batch)
    assert "history is off" in (await changing.operator.ask("why", topic="s/1"))["error"]
    database = changing.gateway.database

    async def rows() -> int:
        count = "SELECT count(*) FROM history"
        return await database.reader.query(count, (), lambda all_: int(all_.fetchone()[0]))

    async with asyncio.timeout(30):
        while await rows():  # noqa: ASYNC110 - what is awaited has no event to wait for
            await asyncio.sleep(0.01)
    await code_of(client, "s/1")
    await changing.changed(uplink + on)
    await code_of(client, "s/2")
    await changing.gateway.writer.wait_for(changing.gateway.writer.batch)
    assert await rows() == 1


async def test_without_an_uplink_the_history_is_turned_on_and_off(
    changing: Changing, tmp_path: Path
) -> None:
    on = '[history]\nkeep = "1h"\n'
    await changing.start("")
    client = await changing.clients.connect("c")
    await client.subscribe("s/+")
    assert await changing.changed(on) == ["history.keep"]
    await code_of(client, "s/1")
    await changing.gateway.writer.wait_for(changing.gateway.writer.batch)
    lines = (await changing.operator.ask("why", topic="s/1"))["lines"]
    assert any("client 'c' on s/+" in line for line in lines), lines
    assert await changing.changed("") == ["history.keep"]
    await changing.gateway.writer.wait_for(changing.gateway.writer.batch)
    async with asyncio.timeout(30):
        # what is awaited has no event to wait for
        while await is_recorded(changing.gateway.database):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_the_history_names_rules_as_they_were(changing: Changing, tmp_path: Path) -> None:
    uplink = f'[uplink]\ndirectory = "{tmp_path / "landing"}"\n[history]\nkeep = "1h"\n'
    where = RULE.format("s/#") + 'where = "payload.value > {}"\n'
    await changing.start(uplink + where.format(5))
    client = await changing.clients.connect("c")
    await code_of(client, "s/1", b'{"value":1}')
    await changing.changed(uplink.replace("1h", "2h") + where.format(7))
    await code_of(client, "s/2", b'{"value":1}')
    for topic, expression in (("s/1", "payload.value > 5"), ("s/2", "payload.value > 7")):
        answer = await changing.operator.ask("why", topic=topic)
        assert any(expression in line for line in answer["lines"]), answer


@pytest.mark.parametrize("history", ["", '[history]\nkeep = "1h"\n'])
async def test_the_first_uplink_comes_while_the_gateway_runs(
    changing: Changing, tmp_path: Path, history: str
) -> None:
    await changing.start(history)
    client = await changing.clients.connect("c")
    await code_of(client, "sensors/1", b"before")
    uplink = f'[[uplink]]\nname = "a"\ndirectory = "{tmp_path / "a"}"\n'
    assert await changing.changed(history + uplink) == ["uplink[0]"]
    await code_of(client, "sensors/1", b"after")
    await changing.changed(history.replace("1h", "2h") + uplink.replace('/a"', '/b"'))
    await until(lambda: landed(tmp_path / "a") == [("main", 1)])
    assert (await changing.operator.ask("status"))["uplinks"]


async def test_a_first_uplink_that_cannot_begin_changes_nothing(
    changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StartError("the disk takes no new epoch")

    await changing.start("")
    before = changing.gateway.configuration
    monkeypatch.setattr("gateway.app.uplink.uplinks.start_uplinks", refuse)
    (refusal,) = (await changing.reload('[uplink]\ndirectory = "a"\n'))["refused"]
    assert refusal["error"] == "the disk takes no new epoch"
    assert changing.gateway.configuration is before
