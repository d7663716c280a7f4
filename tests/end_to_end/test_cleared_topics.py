"""A topic that is cleared here is cleared at a fleet's Mosquitto, whatever the rule's `where`."""

from pathlib import Path

import pytest

from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

GATEWAY = """
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
{keys}
[[uplink.rule]]
topic = "sensors/#"
target = "{{topic}}"
where = "payload.value > 20"
retain = true
"""


@pytest.mark.parametrize("keys", ["", "plain = true", 'plain = true\nmqtt = "3.1.1"'])
def test_a_cleared_topic_is_cleared_at_the_fleet(
    tmp_path: Path, fleet: Mosquitto, keys: str
) -> None:
    gateway = GatewayProcess(tmp_path, GATEWAY.format(port=fleet.port, keys=keys)).start()
    up = FleetCollector(fleet.port, "sensors/#", "up")
    local = FleetCollector(gateway.port, "nothing", "local")
    local.publish("sensors/kept", b'{"value":25}', retain=True)
    local.publish("sensors/gone", b'{"value":26}', retain=True)
    local.publish("sensors/gone", b"", retain=True)
    local.publish("sensors/last", b'{"value":27}', retain=True)
    until(lambda: len(up.received) == 4, "all are up", gateway.log)
    assert [each.payload for each in up.received if each.topic == "sensors/gone"][1] == b""
    late = FleetCollector(fleet.port, "sensors/#", "late")
    until(lambda: len(late.received) == 2, "what is retained", gateway.log)
    assert {each.topic for each in late.received} == {"sensors/kept", "sensors/last"}
    for each in (up, local, late):
        each.close()
    assert gateway.stop() == 0
