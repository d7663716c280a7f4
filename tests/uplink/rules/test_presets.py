"""The documented configurations, each against a Mosquitto with the same demands."""

import asyncio
import re
import tomllib
from pathlib import Path

import pytest

from gateway.mqtt.packets import PubAck, Publish, PubRel
from tests.support.disk.storage import until
from tests.support.fleet.clouds import AWS, EMQX, IOT_HUB, THINGSBOARD, Cloud, tls_of
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import RawClient

PAGE = Path(__file__).parents[3] / "docs/start/presets.md"
BLOCK = re.compile(r"^## (.*?)\n.*?```toml\n(.*?)```", re.MULTILINE | re.DOTALL)
PRESETS = dict(BLOCK.findall(PAGE.read_text("utf-8")))

TOKEN = "A1_TEST_TOKEN"
HUB = "plant.azure-devices.net/barn/?api-version=2021-04-12"
AUTHORIZED = "barn?x-amz-customauthorizer-name=plant"
WITHOUT_REPORTS = ("ThingsBoard", "Azure IoT Hub")
OWN = "pattern readwrite tidegate/%u/#\n"
CERTIFICATE = "require_certificate true\nuse_identity_as_username true\n"

DEMANDS = {
    "Mosquitto": ("password barn", OWN),
    "AWS IoT Core": (
        CERTIFICATE + "max_packet_size 149504\nmax_inflight_messages 100\nmax_topic_alias 8\n",
        "pattern readwrite tidegate/%c/#\n",  # %c: the client identifier, which is the thing's name
    ),
    "AWS IoT Core with a custom authorizer": (
        f"password {AUTHORIZED}",
        "pattern readwrite tidegate/%c/#\n",
    ),
    "Azure IoT Hub": (
        f"password {HUB}",
        (
            f"user {HUB}\ntopic write devices/barn/messages/events/#\n"
            "topic read devices/barn/messages/devicebound/#\n"
        ),
    ),
    "Azure Event Grid": (
        CERTIFICATE + "retain_available false\nmax_inflight_messages 16\nmax_topic_alias 10\n",
        OWN,
    ),
    "HiveMQ Cloud": ("password barn", OWN),
    "ThingsBoard": ("", f"user {TOKEN}\ntopic write v1/devices/me/telemetry\n"),
}
"""What the broker demands (`password` and a user for a password file), and its rights."""

FLEET_LISTENER = """\
per_listener_settings true
listener {port} 127.0.0.1
allow_anonymous {anonymous}
certfile {certificate}
keyfile {key}
cafile {ca_file}
acl_file {acl}
"""


class _Place:
    """Everything that a preset names, in a folder."""

    def __init__(self, folder: Path, preset: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.authority = Authority(folder)
        self.demands, self.rules = DEMANDS[preset]
        self.text = PRESETS[preset]

    async def broker(self) -> Mosquitto:
        """Return the service's stand-in; a second port of it takes everybody, to look at it."""
        server, acl = self.authority.issue("localhost"), self.folder / "acl"
        acl.write_text(self.rules)
        listener = FLEET_LISTENER.format(
            port=self.port,
            certificate=server.certificate,
            key=server.key,
            ca_file=self.authority.ca_file,
            acl=acl,
            anonymous=str(not self.demands.startswith("password")).lower(),
        )
        if self.demands.startswith("password"):
            users, name = self.folder / "users", self.demands.partition(" ")[2]
            command = ("mosquitto_passwd", "-b", "-c", str(users), name, "geheim")
            assert await (await asyncio.create_subprocess_exec(*command)).wait() == 0
            listener += f"password_file {users}\n"
        else:
            listener += self.demands
        broker = Mosquitto(self.folder)
        config = self.folder / "mosquitto" / "mosquitto.conf"
        # what is set for all comes first
        for name in ("retain_available", "max_packet_size"):
            if found := re.search(rf"^{name} .*\n", listener, re.MULTILINE):
                listener = found[0] + listener.replace(found[0], "")
        config.write_text(listener + config.read_text())
        broker.start()
        return broker

    def config(self) -> str:
        """Return the preset with the places of this machine."""
        barn, text = self.authority.issue("barn"), self.text
        secrets = dict.fromkeys(("token", "sas-token", "password"), "geheim")
        secrets |= {"hivemq-password": "geheim", "thingsboard-token": TOKEN}
        for name, secret in secrets.items():
            (self.folder / name).write_text(secret)
            text = re.sub(f"/(etc|run)/tidegate/{name}", str(self.folder / name), text)
        text = re.sub(r'url = ".*"', f'url = "mqtts://localhost:{self.port}"', text)
        text = re.sub(r"^ca_file = .*\n", "", text, flags=re.MULTILINE)
        text = text.replace("[uplink]\n", f'[uplink]\nca_file = "{self.authority.ca_file}"\n')
        text = re.sub(r'tls_certificate = ".*"', f'tls_certificate = "{barn.certificate}"', text)
        return re.sub(r'tls_key = ".*"', f'tls_key = "{barn.key}"', text) + LISTENER


LISTENER = '[[listener]]\nhost = "127.0.0.1"\n'


@pytest.mark.mosquitto
@pytest.mark.parametrize("preset", DEMANDS)
@pytest.mark.uncovered
async def test_messages_go_up_as_the_page_says(tmp_path: Path, preset: str) -> None:
    assert PRESETS.keys() == DEMANDS.keys()
    place = _Place(tmp_path, preset)
    rule = tomllib.loads(place.text)["uplink"]["rule"][0]
    broker = await place.broker()
    collector = FleetCollector(broker.port, "#")
    gateway = GatewayProcess(tmp_path, place.config())
    topic = rule["topic"].replace("#", "+/+").replace("+/+", "n1/temperature")
    target = rule.get("target", f"tidegate/barn/data/{topic}")
    try:
        await asyncio.to_thread(gateway.start)
        client = await RawClient.open(gateway.port)
        await client.connect_as("publisher")
        for number in range(1, 301):
            payload = b'{"value":%d}' % number
            await client.send(Publish(topic, payload, 1, packet_id=number))
        for _ in range(300):
            assert isinstance(await client.receive(), PubAck)
        await client.close()

        def arrived() -> set[str]:
            return {each.payload.decode() for each in collector.received if each.topic == target}

        await until(lambda: len(arrived()) == 300)
        reports = {each.topic for each in collector.received} - {target}
        reported = {f"tidegate/barn/{name}" for name in ("status", "ledger", "clock")}
        if preset in WITHOUT_REPORTS:
            assert not reports
        else:
            await until(lambda: reported <= {each.topic for each in collector.received})
        assert "rejected" not in gateway.log()
    finally:
        gateway.kill()
        collector.close()
        broker.kill()


CLOUDS = {
    "AWS IoT Core": AWS,
    "Azure IoT Hub": IOT_HUB,
    "HiveMQ Cloud": EMQX,
    "ThingsBoard": THINGSBOARD,
}
FORBIDDEN = """
[[uplink.rule]]
topic = "forbidden/#"
target = "{topic}"
retain = true
"""
GOOD = 30
RECONNECT = 1


async def _until_calm(fleet: Cloud) -> None:
    """Return once nothing was refused for longer than the gateway waits before it connects."""
    async with asyncio.timeout(60):
        seen = -1
        while seen != len(fleet.refused):
            seen = len(fleet.refused)
            await asyncio.sleep(2 * RECONNECT)


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.uncovered
@pytest.mark.slow
async def test_nothing_stops_a_link_to_a_cloud_for_ever(tmp_path: Path, cloud: str) -> None:
    """It refuses QoS 2, large messages, retained ones and topics; all others go up."""
    place, fleet = _Place(tmp_path, cloud), Cloud(CLOUDS[cloud])
    server = place.authority.issue("localhost")
    fleet.port = place.port
    await fleet.start(tls_of(server.certificate, server.key))
    rule = tomllib.loads(place.text)["uplink"]["rule"][0]
    topic = rule["topic"].replace("#", "+/+").replace("+/+", "n1/temperature")
    text = place.config().replace(LISTENER, FORBIDDEN + LISTENER)
    config = text.replace(
        "[uplink]\n", f"[uplink]\nreconnect = {{ min = {RECONNECT}, max = {RECONNECT} }}\n"
    )
    gateway = GatewayProcess(tmp_path, config)
    try:
        await asyncio.to_thread(gateway.start)
        client = await RawClient.open(gateway.port)
        await client.connect_as("publisher")
        number = 0
        for each in range(GOOD):
            number += 1
            payload = b'{"value":%d}' % each
            if each % 7 == 3:  # of QoS 2, and retained here
                await client.send(Publish(topic, payload, 2, retain=True, packet_id=number))
                await client.receive()
                await client.send(PubRel(number))
            else:
                await client.send(Publish(topic, payload, 1, packet_id=number))
            await client.receive()
            if each == 5:
                number += 1
                await client.send(Publish("forbidden/x", b"f", 1, retain=True, packet_id=number))
                await client.receive()
        number += 1
        await client.send(Publish(topic, bytes(300_000), 1, packet_id=number))
        await client.receive()
        await client.send(Publish(topic, b"last", 1, packet_id=number + 1))
        await client.receive()
        await client.close()
        wanted = {b'{"value":%d}' % each for each in range(GOOD)} | {b"last"}
        await until(lambda: wanted <= {each.payload for each in fleet.publishes})
        await _until_calm(fleet)
        forbidden = gateway.log().count("(forbidden/x, 1 bytes) was rejected")
        # the live one, and that of a new session if both were in flight when connections ended
        assert 1 <= forbidden <= 2, gateway.log()
        assert b"f" not in {each.payload for each in fleet.publishes}
        assert "topic" in fleet.refused or "retain" in fleet.refused
        status = await asyncio.to_thread(
            tidegate, "uplink", "status", f"mqtt://127.0.0.1:{gateway.port}"
        )
        assert "connected" in status.stdout
    finally:
        gateway.kill()
        await fleet.stop()


def test_the_first_file_of_the_fleet_page_is_a_preset() -> None:
    page = (PAGE.parents[1] / "use/fleet.md").read_text("utf-8")
    assert f"```toml\n{PRESETS['Mosquitto']}```" in page.partition("\n## ")[0]
