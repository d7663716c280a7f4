"""What became of a message, asked of a running gateway."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.app.query.why import NO_HISTORY, number_of
from gateway.app.responder import RequestError
from gateway.mqtt.packets import PubAck, Publish
from tests.app.query.conftest import CONFIG
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway, started
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients

KEPT = """[[uplink.rule]]
topic = "kept/#"
stream = "kept"
where = "CHANGED(payload.value)"
retain = true
"""


@pytest.fixture
async def recording(tmp_path: Path) -> AsyncIterator[Gateway]:
    text = CONFIG.format(port=free_port(), folder=tmp_path / "landing").replace(
        "[[channel]]", KEPT + "[[channel]]"
    )
    async with started(tmp_path, f'{text}\n[history]\nkeep = "1h"\n') as made:
        yield made


async def test_a_message_is_explained_by_topic_and_by_number(recording: Gateway) -> None:
    port = recording.configuration.listeners[0].port
    operator, clients = await Operator.open(port), Clients(port)
    publisher = await clients.connect("sensor")
    await publisher.subscribe("sensors/#", 1)
    for number, value in enumerate((30, 10), 1):
        payload = b'{"value":%d}' % value
        await publisher.send(Publish("sensors/x", payload, 1, packet_id=number))
        while not isinstance(await publisher.receive(), PubAck):
            pass
    await until(lambda: not recording.writer.pending_rows)
    lines = (await operator.ask("why", topic="sensors/x"))["lines"]
    name = lines[0].removeprefix("number ")
    assert name == f"{recording.epoch}.main.2"
    text = "\n".join(lines)
    assert "sensors/x, 12 bytes, QoS 1, from 'sensor'" in text
    (rule,) = (
        each["rule"].removeprefix("0")
        for each in (await operator.ask("rules"))["rows"]
        if each["topic"] == "sensors/#"
    )
    assert f"rule {rule} on sensors/#: FALSE" in text
    assert "10  <-  payload.value" in text
    assert "filtered: no rule of the stream took it" in text
    assert "client 'sensor' on sensors/#, QoS 1: no $where, passes" in text
    assert (await operator.ask("why", number=name))["lines"] == lines[1:]
    first = f"{recording.epoch}.main.1"
    assert f"accepted by rule {rule}" in "\n".join(
        (await operator.ask("why", number=first))["lines"]
    )
    assert "has no message in the history" in await operator.refused("why", topic="nothing")
    assert "too old, or never given" in await operator.refused("why", number="00.main.9")
    assert "why needs number" in await operator.refused("why")
    assert "why needs number" in await operator.refused("why", number="1", topic="2")
    await clients.close()
    await operator.close()


async def test_what_clears_a_topic_is_explained(recording: Gateway) -> None:
    port = recording.configuration.listeners[0].port
    operator, clients = await Operator.open(port), Clients(port)
    publisher = await clients.connect("sensor")
    for number, value in enumerate((b'{"value":30}', b"", b'{"value":30}'), 1):
        await publisher.send(Publish("kept/x", value, 1, retain=True, packet_id=number))
        while not isinstance(await publisher.receive(), PubAck):
            pass
    await until(lambda: not recording.writer.pending_rows)
    texts = [
        "\n".join((await operator.ask("why", number=f"{recording.epoch}.kept.{number}"))["lines"])
        for number in (2, 3)
    ]
    assert (
        "rule @8f54eef8 on kept/#: TRUE\n  it clears the topic, and a rule with retain" in texts[0]
    )
    assert "accepted by rule @8f54eef8" in texts[0]
    assert "TRUE  <-  CHANGED(payload.value)" in texts[1]
    await clients.close()
    await operator.close()


async def test_without_a_history_it_says_how_to_have_one(operator: Operator) -> None:
    assert await operator.refused("why", topic="a") == NO_HISTORY


def test_a_number_is_three_parts() -> None:
    assert number_of("c49ab2fe71.main.42") == ("c49ab2fe71", "main", 42)
    for wrong in ("", "1", "a.b", "a.b.", "a.b.-1", "a.b.1e3", "a.b." + "9" * 30):
        with pytest.raises(RequestError, match="is not EPOCH"):
            number_of(wrong)
