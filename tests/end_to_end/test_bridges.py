"""A Mosquitto that bridges to a gateway with its defaults; a gateway with one topic both ways."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

# With the 0 of the other tests, a bridge of MQTT 5 would say a Receive Maximum of 0.
BRIDGE = """
max_inflight_messages 20
connection mill
remote_clientid mill
address 127.0.0.1:{port}
topic # both 1
bridge_protocol_version {version}
restart_timeout 1
"""
STATE = "$SYS/broker/connection/mill/state"
BOTH_WAYS = """
[uplink]
url = "mqtt://127.0.0.1:{port}"
plain = true
[[uplink.rule]]
topic = "cmnd/#"
target = "{{topic}}"
[[uplink.down]]
topic = "cmnd/#"
local = "{{topic}}"
"""


@pytest.fixture
def collect() -> Iterator[Callable[[int, str, str], FleetCollector]]:
    """Give what makes subscribers of a port, which are closed at the end."""
    made: list[FleetCollector] = []

    def subscriber(port: int, topic_filter: str, name: str) -> FleetCollector:
        made.append(FleetCollector(port, topic_filter, name))
        return made[-1]

    yield subscriber
    for each in made:
        each.close()


def _payloads(collector: FleetCollector) -> Counter[bytes]:
    return Counter(m.payload for m in collector.received if not m.topic.startswith("$SYS"))


def _have(sides: list[FleetCollector], wanted: set[bytes]) -> Callable[[], bool]:
    return lambda: all(wanted <= set(_payloads(side)) for side in sides)


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv50"])
def test_a_mosquitto_bridges_to_a_gateway_with_its_defaults(
    tmp_path: Path,
    gateway: GatewayProcess,
    collect: Callable[[int, str, str], FleetCollector],
    version: str,
) -> None:
    here = collect(gateway.port, "#", "here")
    states = collect(gateway.port, STATE, "states")
    mosquitto = Mosquitto(tmp_path, BRIDGE.format(port=gateway.port, version=version))
    mosquitto.start()
    try:
        until(lambda: bool(states.received), "the bridge says that it is connected", gateway.log)
        assert states.received[-1].payload == b"1"
        there = collect(mosquitto.port, "#", "there")

        def is_subscribed() -> bool:  # which it asks for behind what it says
            here.publish("probe", b"probe")
            return b"probe" in _payloads(there)

        until(is_subscribed, "the bridge has subscribed", gateway.log)
        for number in range(20):
            here.publish(f"up/{number}", b"here %d" % number)
            there.publish(f"up/{number}", b"there %d" % number)
        names = (b"here", b"there")
        wanted = {b"%s %d" % (side, number) for side in names for number in range(20)}
        until(_have([here, there], wanted), "all came", gateway.log)
        here.publish("end", b"here ends")
        there.publish("end", b"there ends")
        ends = {b"here ends", b"there ends"}
        until(_have([here, there], ends), "what came twice would have come before", gateway.log)
        for side in (here, there):
            counts = _payloads(side)
            assert {counts[each] for each in wanted | ends} == {1}, counts
    finally:
        mosquitto.kill()
    until(lambda: states.received[-1].payload == b"0", "its will says that it is gone", gateway.log)


def test_nobody_else_writes_the_state_of_a_bridge(
    gateway: GatewayProcess, collect: Callable[[int, str, str], FleetCollector]
) -> None:
    states = collect(gateway.port, "$SYS/broker/connection/#", "states")
    collect(gateway.port, "nothing", "other").publish(STATE, b"forged")
    collect(gateway.port, "nothing", "mill").publish(STATE, b"1")
    until(lambda: bool(states.received), "the bridge's own came", gateway.log)
    assert [each.payload for each in states.received] == [b"1"]


def test_the_same_topics_up_and_down_come_once_at_both_ends(
    tmp_path: Path, fleet: Mosquitto, collect: Callable[[int, str, str], FleetCollector]
) -> None:
    (tmp_path / "gateway").mkdir()
    config = BOTH_WAYS.format(port=fleet.port)
    gateway = GatewayProcess(tmp_path / "gateway", config).start()
    try:
        up, local = collect(fleet.port, "#", "up"), collect(gateway.port, "#", "local")
        until(lambda: any(b"online" in m.payload for m in up.received), "it is up", gateway.log)
        local.publish("cmnd/plug/POWER", b"TOGGLE")
        up.publish("cmnd/plug/COLOUR", b"red")
        both = {b"TOGGLE", b"red"}
        until(_have([up, local], both), "both came", gateway.log)
        local.publish("cmnd/end", b"end")
        until(_have([up, local], {b"end"}), "the end came", gateway.log)
        for side in (up, local):
            assert {each: _payloads(side)[each] for each in both} == dict.fromkeys(both, 1)
    finally:
        gateway.kill()
