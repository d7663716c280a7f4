"""Rules, outbox and links change while messages pass."""

import json
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.mqtt.packets import Publish
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
    waiting = changing.gateway.counters.values
    await until(lambda: waiting.get("tidegate/outbox/rows") == 12)
    for _ in range(5):
        await code_of(client, "alarms/1")
    assert waiting["tidegate/outbox/evicted/latest"] == 4
    await changing.changed(fleet + rules + '[outbox]\nwhen_full = "reject"\nmaximum_messages = 1\n')
    assert await code_of(client, "sensors/1") == 0x97
    await changing.changed(fleet + rules)
    assert await code_of(client, "sensors/1") in (0, 0x10)


async def test_what_only_a_restart_changes_is_told(changing: Changing, tmp_path: Path) -> None:
    uplink = f'[uplink]\ndirectory = "{tmp_path / "landing"}"\n'
    await changing.start(uplink)
    answer = await changing.reload(
        uplink + 'recall = true\nreports = false\nwindow = 3\n[history]\nkeep = "1h"\n'
        "[storage]\ncommit_delay = 9\n[metrics]\n"
    )
    keys = {each["key"] for each in answer["restart"]}
    assert keys == {
        "history.keep",
        "metrics",
        "storage.commit_delay",
        "uplink.recall",
        "uplink.reports",
    }
    assert [each["key"] for each in answer["changed"]] == ["uplink.window"]
    two = '[[uplink]]\nname = "a"\ndirectory = "a"\n[[uplink]]\nname = "b"\ndirectory = "b"\n'
    answer = await changing.reload(two)
    assert all(each["key"].startswith("uplink") for each in answer["restart"])
    assert answer["restart"]
    answer = await changing.reload("")
    assert answer["restart"][0]["reason"].startswith("waiting messages know their uplinks")
    assert changing.gateway.configuration.uplinks[0].window == 3


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
    without = await changing.reload("[history]\nkeep = '2h'\n")
    assert without["restart"]


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
    assert (await changing.reload(history))["restart"]


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
