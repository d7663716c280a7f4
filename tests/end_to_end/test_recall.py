"""A window of the history goes up again, asked for by a client or by the fleet."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from pipeline.cli import main
from pipeline.ledger.completeness import OUTCOMES
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import GAPS, STREAMS
from tests.support.fleet.fleet_collector import FleetCollector, Received
from tests.support.nodes.sensor_client import SensorClient
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import RawClient
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

CONFIG = """
[gateway]
id = "barn"
[history]
keep = "1h"
[uplink]
url = "mqtt://127.0.0.1:{port}"
recall = true
[[uplink.rule]]
topic = "sensors/#"
where = "payload.value > 7"
"""


@pytest.fixture
def gateway(tmp_path: Path, fleet: Mosquitto) -> Iterator[GatewayProcess]:
    folder = tmp_path / "gateway"
    folder.mkdir()
    process = GatewayProcess(folder, CONFIG.format(port=fleet.port))
    yield process.start()
    process.kill()


@pytest.fixture
def collector(fleet: Mosquitto) -> Iterator[FleetCollector]:
    made = FleetCollector(fleet.port)
    yield made
    made.close()


@pytest.fixture
def measured(gateway: GatewayProcess, collector: FleetCollector) -> None:
    """Ten messages, of which the rule lets three through."""
    sensor = SensorClient(gateway.port, "sensors/n1/count")
    sensor.publish(10)
    sensor.wait(10)
    sensor.close()
    until(lambda: len(collector.data) == 3, "three arrive", gateway.log)


def numbers(messages: list[Received]) -> list[tuple[int, int, str | None]]:
    """Number, value, and whether it was sent before."""
    return [
        (message.name[2], json.loads(message.payload)["value"], message.first("resent"))
        for message in messages
    ]


async def ask(port: int, request: Mapping[str, object]) -> tuple[int, list[dict[str, object]]]:
    """Publish a request; return the reason code and the answers."""
    client = await RawClient.open(port)
    await client.connect_as("asker")
    await client.subscribe("answers/asker", 1)
    properties = Properties(response_topic="answers/asker", correlation_data=b"\x07")
    payload = json.dumps(request).encode()
    await client.send(
        Publish("$CONTROL/tidegate/recall", payload, 1, packet_id=5, properties=properties)
    )
    code = -1
    answers: list[dict[str, object]] = []
    while code < 0 or not answers or answers[-1]["state"] == "accepted":
        packet = await client.receive()
        if isinstance(packet, PubAck):
            code = packet.reason_code
        elif isinstance(packet, Publish):
            assert packet.properties.correlation_data == b"\x07"
            answers.append(json.loads(packet.payload))
            await client.send(PubAck(packet.packet_id))
    await client.close()
    return code, answers


@pytest.mark.usefixtures("measured")
def test_a_client_asks_and_filtered_messages_come_under_their_numbers(
    gateway: GatewayProcess, collector: FleetCollector
) -> None:
    before = len(collector.data)
    request = {"where": "payload.value BETWEEN 4 AND 8", "id": "case-7"}
    code, (accepted, done) = asyncio.run(ask(gateway.port, request))
    until(lambda: len(collector.data) == before + 5, "five arrive again", gateway.log)
    assert numbers(collector.data[before:]) == [(value, value, "1") for value in range(4, 9)]
    assert (code, accepted) == (0, {"id": "case-7", "state": "accepted"})
    assert (done["id"], done["state"], done["messages"]) == ("case-7", "done", 5)


@pytest.mark.usefixtures("measured")
def test_the_pipeline_asks_for_what_is_missing_and_watches_it_arrive(
    gateway: GatewayProcess, collector: FleetCollector, fleet: Mosquitto, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    tables, before = tmp_path / "tables", len(collector.data)
    on_disk.create(tables)
    epoch, stream, number = collector.data[0].name
    lost: dict[str, object] = {"gateway": "barn", "epoch": epoch, "stream": stream}
    counts = dict.fromkeys(OUTCOMES, 0) | {"missing": 2, "emitted": 10}
    delta.append(tables / "streams", STREAMS, [{**lost, **counts}])
    gap = lost | {"first": number, "last": number + 1, "outcome": "missing", "cause": ""}
    delta.append(tables / "gaps", GAPS, [gap])
    broker = f"mqtt://127.0.0.1:{fleet.port}"
    assert main(["ledger", "--tables", str(tables), "--recall", "--broker", broker]) == 3
    told = capsys.readouterr().err
    assert "requested 1 ranges: 2 messages are on their way, 2 arrived" in told
    until(lambda: len(collector.data) == before + 2, "two arrive again", gateway.log)


@pytest.mark.usefixtures("measured")
def test_a_request_that_cannot_be_carried_out_is_answered(gateway: GatewayProcess) -> None:
    code, answers = asyncio.run(ask(gateway.port, {"first": 1}))
    assert code == 0x83
    assert [answer["state"] for answer in answers] == ["refused"]
    assert "epoch" in str(answers[0]["error"])


async def ask_for_answers_on(port: int, topic: str) -> int:
    client = await RawClient.open(port)
    await client.connect_as("asker")
    properties = Properties(response_topic=topic)
    await client.send(
        Publish("$CONTROL/tidegate/recall", b"{}", 1, packet_id=5, properties=properties)
    )
    answer = await client.receive()
    await client.close()
    assert isinstance(answer, PubAck)
    return answer.reason_code


@pytest.mark.parametrize("topic", ["$SYS/broker/uptime", "$CONTROL/tidegate/uplink"])
def test_no_answer_goes_where_the_asker_may_not_write(gateway: GatewayProcess, topic: str) -> None:
    assert asyncio.run(ask_for_answers_on(gateway.port, topic)) == 0x90


def test_no_answer_goes_where_the_rules_let_the_asker_write_nothing(tmp_path: Path) -> None:
    rules = "topic write $CONTROL/tidegate/recall\ntopic write answers/#\n"
    (tmp_path / "acl").write_text(rules)
    gateway = GatewayProcess(tmp_path, '[[listener]]\nacl_file = "acl"\n[uplink]\n').start()
    try:
        asked = [
            asyncio.run(ask_for_answers_on(gateway.port, topic))
            for topic in ("valves/open", "$delay/5/answers/x", "answers/x")
        ]
    finally:
        gateway.kill()
    assert asked == [0x87, 0x90, 0x83], "the last is answered: there is no history"


@pytest.mark.usefixtures("measured")
def test_the_fleet_asks_at_its_own_broker_for_numbers_of_an_earlier_start(
    gateway: GatewayProcess, fleet: Mosquitto, collector: FleetCollector
) -> None:
    epoch = collector.data[0].name[0]
    gateway.stop()
    gateway.start()
    status = ("tidegate/barn/status", b"online")
    until(
        lambda: any(
            m.topic == status[0] and status[1] in m.payload and epoch.encode() not in m.payload
            for m in collector.received
        ),
        "it is back",
        gateway.log,
    )
    before = len(collector.data)
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.connect("127.0.0.1", fleet.port)
    client.loop_start()
    request = json.dumps({"epoch": epoch, "first": 2, "last": 4})

    def asked_and_answered() -> bool:
        if not states():  # the subscription may come after the status
            client.publish("tidegate/barn/control/recall", request, qos=1).wait_for_publish(5)
        return states()[-1:] == ["done"]

    def states() -> list[str]:
        answers = [m for m in collector.received if m.topic == "tidegate/barn/recall"]
        return [json.loads(message.payload)["state"] for message in answers]

    until(asked_and_answered, "the recall is done", gateway.log)
    client.loop_stop()
    client.disconnect()
    until(lambda: len(collector.data) >= before + 3, "three arrive again", gateway.log)
    assert numbers(collector.data[before : before + 3]) == [
        (value, value, "1") for value in (2, 3, 4)
    ]
    assert {message.name[0] for message in collector.data[before:]} == {epoch}
