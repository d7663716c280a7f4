"""Users and access rules of a running gateway, which change while it runs."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.mqtt.packets import ConnAck, Connect, Disconnect, PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.passwords.hashing import hash_password
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

CONFIG = """
[broker]
failed_login_delay = 0.05
[[listener]]
password_file = "users"
acl_file = "acl"
[access]
operators = ["olga"]
[[access.role]]
name = "station"
users = ["station-*"]
readwrite = ["stations/%u/#"]
"""

ACL = """
user anna
topic read s/#
user sensor
topic write s/#
"""

UPLINK = "$CONTROL/tidegate/uplink"
DENIED = ReasonCode.NOT_AUTHORIZED
HASHED = hash_password(b"secret", cost=4)


@dataclass
class Place:
    gateway: GatewayProcess
    clients: Clients
    folder: Path

    async def connect(self, username: str, client_id: str | None = None) -> RawClient:
        name = username if client_id is None else client_id
        return await self.clients.connect(name, username=username, password=b"secret")

    def write(self, users: str = "anna sensor olga station-1", acl: str = ACL) -> None:
        lines = [f"{user}:{HASHED}\n" for user in users.split()]
        self.move("users", "".join(lines))
        self.move("acl", acl)

    def move(self, name: str, text: str) -> None:
        """Write a file and move it to its place, as most editors do."""
        new = self.folder / "new"
        new.write_text(text)
        os.utime(new, (time.time() - 1, time.time() - 1))
        new.replace(self.folder / name)


def hang_up(place: Place) -> None:
    assert place.gateway.process is not None
    place.gateway.process.send_signal(signal.SIGHUP)


def do_nothing(_: Place) -> None:
    """Leave it to the gateway to see that its files have changed."""


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    gateway = GatewayProcess(tmp_path, CONFIG)
    place = Place(gateway, Clients(gateway.port), tmp_path)
    place.write()
    gateway.start()
    yield place
    await place.clients.close()
    gateway.kill()


async def ask(client: RawClient) -> None:
    """Let a client be answered, a moment later: files are looked at a few times a second."""
    await asyncio.sleep(0.02)
    await client.waiting()


async def publish(client: RawClient, topic: str, payload: bytes = b"x") -> ReasonCode:
    await client.send(Publish(topic, payload, 1, packet_id=7))
    while not isinstance(answer := await client.receive(), PubAck):
        assert isinstance(answer, Publish)
    return answer.reason_code


async def test_users_get_where_they_belong(place: Place) -> None:
    anna, sensor, olga = [await place.connect(each) for each in ("anna", "sensor", "olga")]
    assert await anna.subscribe("s/+") == 0
    assert await anna.subscribe("t/+") == DENIED
    assert await anna.subscribe("#") == 0
    assert await publish(sensor, "s/1") == 0
    assert await publish(sensor, "t/1") == DENIED
    came = await anna.waiting()
    assert [packet.topic for packet in came if isinstance(packet, Publish)] == ["s/1"]
    assert await publish(anna, "s/1") == DENIED
    assert await publish(sensor, UPLINK, b"pause") == DENIED
    assert await publish(olga, UPLINK, b"nothing known") != DENIED
    assert await sensor.subscribe("$SYS/broker/tidegate/log") == DENIED
    station = await place.connect("station-1")
    assert await publish(station, "stations/station-1/x") == ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert await publish(station, "stations/station-2/x") == DENIED


@pytest.mark.parametrize("tell", [hang_up, do_nothing])
async def test_what_changes_holds_without_a_restart(
    place: Place, tell: Callable[[Place], None]
) -> None:
    anna, sensor = await place.connect("anna"), await place.connect("sensor")
    await anna.subscribe("#")
    place.write(acl="user anna\ntopic read t/#\nuser sensor\ntopic #\n")
    tell(place)
    while await publish(sensor, "t/1") == DENIED:
        await ask(anna)
    await publish(sensor, "s/1")
    came = await anna.waiting()
    assert {packet.topic for packet in came if isinstance(packet, Publish)} == {"t/1"}
    place.write(users="sensor new", acl="nonsense\n")
    tell(place)
    log = place.gateway.log
    (*_, last) = await anna.until_closed()
    assert isinstance(last, Disconnect)
    assert last.reason_code == DENIED
    assert "continues with its old file" in log()
    assert "acl: line 1 = 'nonsense' is not allowed: user NAME, topic [" in log()
    await place.connect("new")
    assert await publish(sensor, "s/1") == ReasonCode.NO_MATCHING_SUBSCRIBERS
    place.write(acl=ACL)
    tell(place)
    while await publish(sensor, "t/1") != DENIED:
        await sensor.waiting()
    await sensor.waiting()


async def test_a_wrong_password_costs_time_and_the_right_one_none_elsewhere(place: Place) -> None:
    guessing = await place.clients.open()
    await guessing.send(Connect("g", username="anna", password=b"guess"))
    await place.connect("sensor")  # is let in meanwhile
    assert (await guessing.take(ConnAck)).reason_code == ReasonCode.BAD_USER_NAME_OR_PASSWORD
    late = await place.clients.open()
    await late.send(
        Connect("a", username="anna", password=b"secret"), Publish("x", b"", 1, packet_id=1)
    )
    first, second = await late.receive(), await late.receive()
    assert isinstance(first, ConnAck)
    assert second == PubAck(1, DENIED)


async def test_who_is_gone_does_not_log_in_on_a_connection_of_before(place: Place) -> None:
    early = await place.clients.open()
    first = await place.clients.open()
    await first.send(Connect("x", username="anna", password=b"guess"))
    await first.until_closed()  # `early` was accepted before
    place.write(users="sensor")
    hang_up(place)
    while "access rules are read again" not in place.gateway.log():
        await place.connect("sensor")
    await early.send(Connect("a", username="anna", password=b"secret"))
    assert (await early.take(ConnAck)).reason_code == ReasonCode.BAD_USER_NAME_OR_PASSWORD


async def test_a_file_that_is_half_written_for_a_while_is_not_read(place: Place) -> None:
    """What waits for its client arrives, whoever looks meanwhile."""
    anna, sensor = await place.connect("anna"), await place.connect("sensor")
    acl = place.folder / "acl"
    for cut in ("", ACL[: ACL.index("user sensor")]):
        acl.write_text(cut)
        begin = time.monotonic()
        while time.monotonic() < begin + 3:
            assert await publish(sensor, "s/1") != DENIED
            await ask(anna)
        acl.write_text(ACL)
    assert "access rules of" not in place.gateway.log()
    place.move("acl", "# later\n")
    while "may be incomplete" not in place.gateway.log():
        assert await publish(sensor, "s/1") != DENIED
        await ask(anna)
    place.move("acl", ACL)
    place.move("users", "# nobody yet\n")
    while "without a user that does not say" not in place.gateway.log():
        await ask(anna)
    place.write(acl="# empty on purpose\n")
    while await publish(sensor, "s/1") != DENIED:
        await ask(anna)
    assert "acl have changed: 0 rules came, 2 went: user 'anna' +0 -1" in place.gateway.log()
