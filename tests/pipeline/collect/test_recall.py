"""What is missing is asked for again, at a real Mosquitto, of gateways that answer or do not."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from pipeline.cli import main
from pipeline.collect.broker import Broker
from pipeline.collect.recall import Recall, Wanted
from pipeline.errors import PipelineError
from pipeline.ledger.completeness import OUTCOMES
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import GAPS, STREAMS
from tests.support.ports import free_port
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import SECONDS, until

pytestmark = pytest.mark.mosquitto

EPOCH = "00a1b2c3d4"


class Gateways:
    """By docs/understand/fleet-interface.md: barn answers 3 numbers at a time, mill refuses,
    shed is silent."""

    def __init__(self, port: int) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.on_message = self._answer
        subscribed: list[int] = []
        self._client.on_subscribe = lambda *_: subscribed.append(1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._client.subscribe("tidegate/+/control/recall", qos=1)
        until(lambda: subscribed, "the gateways listen")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _answer(self, _client: Client, _data: object, message: MQTTMessage) -> None:
        gateway = message.topic.split("/")[1]
        request = json.loads(message.payload)
        assert (request["epoch"], request["stream"]) == (EPOCH, "main")
        self.asked.append((gateway, request["first"], request["last"]))
        for answer in self._answers(gateway, request):
            for number in range(answer.get("messages", 0)):
                seq = f"{EPOCH}.main.{request['first'] + number}"
                self._send(f"tidegate/{gateway}/data/sensors/n1/t", seq)
            body = json.dumps(answer | {"id": request["id"]})
            self._client.publish(f"tidegate/{gateway}/recall", body, qos=1)

    def _send(self, topic: str, seq: str) -> None:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # not annotated
        properties.UserProperty = [("seq", seq), ("time", "5"), ("was", "10")]
        self._client.publish(topic, b"1", qos=1, properties=properties)

    def _answers(self, gateway: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if gateway == "mill":
            yield {"state": "refused", "error": "there is no history"}
        if gateway == "barn":
            last = min(request["first"] + 2, request["last"])
            reached = {"epoch": EPOCH, "number": last, "time": 5}
            count = 0 if request["first"] == 90 else last - request["first"] + 1
            yield {"state": "accepted"}
            yield {"state": "done", "messages": count, "reached": reached} | {
                "complete": last == request["last"]
            }


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    made = Mosquitto(tmp_path)
    made.start()
    yield made
    made.kill()


def test_gateways_are_asked_range_by_range(broker: Mosquitto) -> None:
    gateways = Gateways(broker.port)
    said: list[str] = []
    wanted = [
        Wanted("barn", EPOCH, "main", 4, 10),
        Wanted("barn", EPOCH, "main", 90, 90),
        Wanted("mill", EPOCH, "main", 1, 1),
        Wanted("shed", EPOCH, "main", 1, 2),
        Wanted("shed", EPOCH, "main", 5, 6),
    ]
    try:
        done = Recall(Broker(f"mqtt://127.0.0.1:{broker.port}"), wanted, said.append).run(3.0)
    finally:
        gateways.close()
    of_barn = [(first, last) for gateway, first, last in gateways.asked if gateway == "barn"]
    assert of_barn == [(4, 10), (7, 10), (10, 10), (90, 90)]
    assert (done.messages, done.arrived) == (7, 7)
    assert sorted(done.failed) == [
        f"barn/{EPOCH}/main numbers 90 to 90: the gateway's history has none of them",
        f"mill/{EPOCH}/main numbers 1 to 1: the gateway refuses: there is no history",
        f"shed/{EPOCH}/main numbers 1 to 2: the gateway does not answer",
        f"shed/{EPOCH}/main numbers 5 to 6: the gateway does not answer",
    ]
    assert f"barn/{EPOCH}/main numbers 4 to 10: 3 messages are on their way" in said


def test_the_command_asks_for_what_is_missing(
    tmp_path: Path, broker: Mosquitto, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "tables"
    on_disk.create(tables)
    gap = {"gateway": "barn", "epoch": EPOCH, "stream": "main", "first": 4, "last": 5, "cause": ""}
    stream = dict.fromkeys(OUTCOMES, 0) | {"missing": 2, "emitted": 9, "gateway": "barn"}
    delta.append(tables / "streams", STREAMS, [stream | {"epoch": EPOCH, "stream": "main"}])
    outcomes = ("missing", "filtered", "not_reported")
    delta.append(tables / "gaps", GAPS, [gap | {"outcome": each} for each in outcomes])
    command = ["ledger", "--tables", str(tables), "--json", "--recall"]
    assert main(command) == 2
    assert "--recall needs --broker" in capsys.readouterr().err
    gateways = Gateways(broker.port)
    try:
        command += ["--broker", f"mqtt://127.0.0.1:{broker.port}", "--wait", str(SECONDS)]
        assert main(command) == 3
    finally:
        gateways.close()
    shown = capsys.readouterr()
    assert gateways.asked == [("barn", 4, 5)]
    assert json.loads(shown.out)["complete"] is False
    assert "requested 1 ranges: 2 messages are on their way, 2 arrived" in shown.err


def test_a_broker_that_is_not_there_or_refuses_is_told(tmp_path: Path) -> None:
    wanted = [Wanted("barn", EPOCH, "main", 4, 10)]
    ask: Callable[[int], object] = lambda port: Recall(  # noqa: E731 - one call for two brokers
        Broker(f"mqtt://127.0.0.1:{port}"), wanted, print
    ).run()
    with pytest.raises(PipelineError, match="cannot connect to mqtt://"):
        ask(free_port())
    users = tmp_path / "users"
    users.touch()
    closed = Mosquitto(tmp_path, f"password_file {users}\nallow_anonymous false\n")
    closed.start()
    try:
        with pytest.raises(PipelineError, match="the broker refused the connection"):
            ask(closed.port)
    finally:
        closed.kill()
