"""Nothing goes in a circle, and nobody hides a message from a fleet, with a real Mosquitto."""

from pathlib import Path

import pytest

from tests.support.fleet.fleet_collector import FleetCollector, Received
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

GATEWAY = """
[gateway]
id = "{id}"
[broker]
maximum_topic_levels = 20
[uplink]
url = "mqtt://127.0.0.1:{port}"
maximum_packet_size = 400_000
[[uplink.rule]]
topic = "{topic}"
[[uplink.down]]
topic = "{down}"
local = "{local}"
[[channel]]
name = "jobs"
filter = "came/jobs/#"
dead_letter_topic = "dead"
max_attempts = 1
inflight_timeout = 1
"""
FORGED = [
    *(("hops", "barn"), ("hops", "mill,barn"), ("seq", "ffffffffff.main.1"), ("resent", "1")),
    *(("was", "00"), ("username", "root"), ("clientid", "x"), ("attempt", "9"), ("a", "b")),
]


def _gateway(folder: Path, config: str = GATEWAY, **values: object) -> GatewayProcess:
    folder.mkdir()
    return GatewayProcess(folder, config.format(**values)).start()


def _numbers(messages: list[Received]) -> list[int]:
    return [message.name[2] for message in messages]


def test_what_came_down_stays_and_what_a_client_says_goes_up(
    tmp_path: Path, fleet: Mosquitto
) -> None:
    gateway = _gateway(
        tmp_path / "barn",
        id="barn",
        port=fleet.port,
        topic="#",
        down="tidegate/barn/data/again/#",
        local="came/{5+}",
    )
    up = FleetCollector(fleet.port, "#", "fleet")
    local = FleetCollector(gateway.port, "#", "local")
    until(lambda: any(b"online" in m.payload for m in up.received), "it is up", gateway.log)
    local.publish("x", b"1", *FORGED)
    local.publish("again/jobs/1", b"2", *FORGED)
    until(lambda: len(up.data) == 2, "both are up", gateway.log)
    up.publish("tidegate/barn/data/again/jobs/2", b"3", ("hops", "mill"), *FORGED)
    until(lambda: len(local.received) == 3, "what another published comes down", gateway.log)
    assert [message.properties for message in local.received[:2]] == [FORGED, FORGED]
    came = local.received[2]  # and not what the gateway sent up itself
    assert (came.topic, came.properties[0]) == ("came/jobs/2", ("hops", "mill,barn"))
    assert came.properties[-len(FORGED) :] == FORGED
    gateway.kill()  # the channel has it on disk, and no consumer
    gateway.start()
    worker = FleetCollector(gateway.port, "$share/jobs/came/jobs/#", "worker")
    until(lambda: len(worker.received) == 1, "the worker has it", gateway.log)
    assert [value for name, value in worker.received[0].properties if name == "attempt"] == [
        "9",
        "1",
    ]
    last = FleetCollector(gateway.port, "nothing", "last")
    last.publish("x", b"last", *FORGED)
    until(lambda: any(m.payload == b"last" for m in up.data), "the last is up", gateway.log)
    sent = [message for message in up.data if message.payload != b"3"]
    levels = [message.topic.removeprefix("tidegate/barn/data/") for message in sent]
    assert list(dict.fromkeys(levels)) == ["x", "again/jobs/1"]
    for message in sent:
        assert message.properties[-len(FORGED) :] == FORGED
        first = [message.first(name) for name in ("was", "username", "clientid", "hops")]
        assert first == ["10", "", "", ""]
    assert gateway.stop() == 0
    for each in (up, local, worker, last):
        each.close()


def test_large_messages_come_down_up_to_the_bound(tmp_path: Path, fleet: Mosquitto) -> None:
    gateway = _gateway(
        tmp_path / "barn", id="barn", port=fleet.port, topic="x", down="down/#", local="{topic}"
    )
    up = FleetCollector(fleet.port, "tidegate/#", "fleet")
    local = FleetCollector(gateway.port, "#", "local")
    until(lambda: any(b"online" in m.payload for m in up.received), "it is up", gateway.log)
    up.publish("down/beyond", bytes(500_000))  # which Mosquitto drops
    up.publish("down/" + "a/" * 30, b"deep")
    up.publish("down/large", bytes(270_000))
    until(lambda: bool(local.received), "the large one comes", gateway.log)
    assert [(m.topic, len(m.payload)) for m in local.received] == [("down/large", 270_000)]
    assert "was refused here: TOPIC_NAME_INVALID" in gateway.log()
    assert gateway.stop() == 0
    for each in (up, local):
        each.close()


def test_another_gateway_gets_what_a_client_says_has_been_there(
    tmp_path: Path, fleet: Mosquitto
) -> None:
    barn = _gateway(
        tmp_path / "barn", id="barn", port=fleet.port, topic="x", down="none", local="none"
    )
    mill = _gateway(
        tmp_path / "mill",
        id="mill",
        port=fleet.port,
        topic="#",
        down="tidegate/barn/data/#",
        local="came/{4+}",
    )
    up = FleetCollector(fleet.port, "tidegate/#", "fleet")
    until(lambda: sum(b"online" in m.payload for m in up.received) == 2, "both are up", mill.log)
    local = FleetCollector(mill.port, "came/#", "local")
    client = FleetCollector(barn.port, "nothing", "client")
    client.publish("x", b"1", ("hops", "mill"), ("hops", "barn"))
    until(lambda: len(local.received) == 1, "it comes down at the mill", mill.log)
    received = local.received[0]
    assert (received.topic, received.properties[0]) == ("came/x", ("hops", "mill"))
    assert received.properties[-2:] == [("hops", "mill"), ("hops", "barn")]
    for each in (up, local, client):
        each.close()
    assert (barn.stop(), mill.stop()) == (0, 0)
