"""Commands of the fleet through a real Mosquitto: once each across kills, and never in a circle."""

from pathlib import Path

import pytest

from tests.conformance.support import wire
from tests.conformance.support.peer import Peers
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

CONFIG = """
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "#"
[[uplink.down]]
topic = "tidegate/{{gateway}}/commands/#"
local = "commands/{{4+}}"
[[uplink.down]]
topic = "settings/+"
local = "{{topic}}"
username = "fleet"
[[access.role]]
name = "settings"
users = ["fleet"]
write = ["settings/a"]
[[access.role]]
name = "all"
anonymous = true
readwrite = ["#", "$SYS/#"]
"""


def test_commands_come_once_across_a_kill_and_do_not_go_up(
    tmp_path: Path, fleet: Mosquitto
) -> None:
    folder = tmp_path / "gateway"
    folder.mkdir()
    gateway = GatewayProcess(folder, CONFIG.format(port=fleet.port)).start()
    up = FleetCollector(fleet.port, "#", "fleet")
    until(lambda: "connected" in gateway.log(), "the link is up", gateway.log)
    until(lambda: any(b"online" in m.payload for m in up.received), "it may ask", gateway.log)
    local = FleetCollector(gateway.port, "#", "local")
    up.publish("tidegate/barn/commands/light", b"1")
    until(lambda: len(local.received) == 1, "the command is there", gateway.log)
    assert (local.received[0].topic, local.received[0].payload) == ("commands/light", b"1")
    assert local.received[0].properties == [("hops", "barn")]
    up.publish("settings/b", b"forbidden")
    up.publish("settings/a", b"allowed")
    until(lambda: len(local.received) == 2, "the setting is there", gateway.log)
    assert local.received[1].payload == b"allowed"
    gateway.kill()
    for number in range(2, 12):
        up.publish("tidegate/barn/commands/light", b"%d" % number)
    gateway.start()
    figure = FleetCollector(gateway.port, "$SYS/broker/tidegate/uplink/down", "figure")
    # what had been acknowledged just before the kill may come once more, and count
    until(lambda: any(int(m.payload) >= 10 for m in figure.received), "ten come", gateway.log)
    until(lambda: local.received[-1].payload == b"11", "what waited comes", gateway.log)
    # Only this gateway may repeat to its client what that has acknowledged just before the kill.
    commands = [m.payload for m in local.received if m.topic == "commands/light"]
    assert list(dict.fromkeys(commands)) == [b"%d" % number for number in range(1, 12)]
    assert not [m for m in up.received if "/data/" in m.topic]
    assert gateway.stop() == 0
    figure.close()
    local.close()
    up.close()


@pytest.mark.parametrize(("version", "mqtt"), [(wire.MQTT_5, "5"), (wire.MQTT_3_1_1, "3.1.1")])
def test_the_session_of_a_bridge_with_qos_2_continues(
    tmp_path: Path, fleet: Mosquitto, version: int, mqtt: str
) -> None:
    """A Mosquitto bridge had the client identifier; its subscriptions send QoS 2."""
    peers = Peers(fleet.port, lambda: "publisher")
    peers.persistent(version, "tidegate-barn").subscribe(("settings/#", 2)).disconnect()
    publisher = peers.connect()
    publisher.publish("settings/a", b"waited", 2)
    config = CONFIG.format(port=fleet.port)
    config = config.replace("[[uplink.rule]]", f'plain = true\nmqtt = "{mqtt}"\n[[uplink.rule]]')
    gateway = GatewayProcess(tmp_path, config)
    gateway.start().stop()
    publisher.publish("settings/a", b"again", 2)
    gateway.start()
    up = FleetCollector(fleet.port, "tidegate/barn/data/up", "fleet")
    local = FleetCollector(gateway.port, "settings/#", "local")
    publisher.publish("settings/a", b"live", 2)
    until(lambda: bool(local.received), "it is there", gateway.log)
    local.publish("up", b"1")
    until(lambda: bool(up.received), "the link is up", gateway.log)
    assert gateway.log().count("is lost") == 0
    gateway.kill()
    up.close()
    local.close()
    peers.close()
