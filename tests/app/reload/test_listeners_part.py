"""Listeners come, change and go, and access rules with them."""

import socket
from pathlib import Path

import pytest

from gateway.mqtt.packets import ConnAck, Connect, Disconnect, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.passwords.hashing import hash_password
from tests.app.reload.conftest import Changing
from tests.app.reload.test_broker_part import code_of
from tests.support.disk.storage import until
from tests.support.ports import free_port
from tests.support.raw_client import RawClient
from tests.support.waiting import listens

TLS = Path(__file__).parents[2] / "support/tls"

ADMINISTRATIVE = ReasonCode.ADMINISTRATIVE_ACTION
DENIED = ReasonCode.NOT_AUTHORIZED


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users"
    add_user(file, b"secret")
    return file


def add_user(file: Path, password: bytes) -> None:
    file.write_text(f"anna:{hash_password(password, cost=4)}\n")


def mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


def listens_at(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


async def end_of(client: RawClient) -> tuple[int, str | None]:
    """Return the code and the reason by which the gateway ends a connection."""
    while not isinstance(packet := await client.receive(), Disconnect):
        pass
    return packet.reason_code, packet.properties.reason_string


async def test_a_listener_comes_and_goes_with_a_reason(changing: Changing) -> None:
    await changing.start("")
    port = free_port()
    other = f"[[listener]]\nport = {port}\n"
    assert await changing.changed(other) == ["listener[1]"]
    client = await changing.at(port).connect("c")
    stays = await changing.clients.connect("stays")
    assert await changing.changed("") == ["listener[1]"]
    assert await end_of(client) == (
        ADMINISTRATIVE,
        "the listener was removed: the configuration has changed",
    )
    assert not listens(port)
    assert await code_of(stays, "a") == 0x10
    for _ in range(3):
        await changing.changed(other)
        await changing.changed("")
    room = changing.gateway.parts.listeners[0].connections.limits.process
    await until(lambda: len(room.newcomers) == 2)  # nothing is left behind


async def test_an_address_that_is_taken_changes_nothing(changing: Changing) -> None:
    await changing.start("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        more = f'[log]\napp = "debug"\n[[listener]]\nport = {free_port()}\n'
        answer = await changing.reload(f"{more}[[listener]]\nport = {port}\n")
    assert f"cannot listen on 127.0.0.1:{port}" in answer["refused"][0]["error"]
    assert len(changing.gateway.parts.listeners) == 1
    assert changing.gateway.configuration.log.app is None


async def test_loopback_becomes_every_address_and_back(changing: Changing) -> None:
    await changing.start("")
    port = free_port()
    here = f'[[listener]]\nhost = "127.0.0.1"\nport = {port}\n'
    everywhere = f'[[listener]]\nhost = "0.0.0.0"\nport = {port}\nallow_anonymous = true\n'
    await changing.changed(here)
    await changing.changed(everywhere)
    assert listens(port)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        answer = await changing.reload(f"{here}[[listener]]\nport = {number}\n")
        assert answer["refused"]
    assert listens(port)  # as it was
    await changing.changed(here)
    assert listens(port)


async def test_limits_change_in_place_and_terms_end_connections(
    changing: Changing, users: Path
) -> None:
    await changing.start("")
    port = free_port()
    plain = f"[[listener]]\nport = {port}\n"
    await changing.changed(plain)
    client = await changing.at(port).connect("c")
    keys = await changing.changed(
        f"{plain}maximum_connections = 1\nconnection_rate = 100\nmaximum_packet_size = 2048\n"
        'maximum_keep_alive = 9\ndurability = "memory"\n'
    )
    assert "listener[1].maximum_connections" in keys
    assert await code_of(client, "a") == 0x10
    late = await RawClient.open(port)
    await late.send(Connect("late"))
    assert (await late.take(ConnAck)).reason_code == ReasonCode.QUOTA_EXCEEDED
    await late.close()
    await changing.changed(f'{plain}password_file = "{users}"\n')
    assert await end_of(client) == (ADMINISTRATIVE, "the listener has changed; connect again")
    anna = await changing.at(port).connect("anna", username="anna", password=b"secret")
    others = users.with_name("others")
    add_user(others, b"other")
    await changing.changed(f'{plain}password_file = "{others}"\nmaximum_keep_alive = 8\n')
    assert (await end_of(anna))[0] == DENIED


async def test_roles_and_operators_hold_at_once(changing: Changing) -> None:
    await changing.start("")
    client = await changing.clients.connect("c")
    assert await client.subscribe("s/#", 1) == 1
    role = '[[access.role]]\nname = "all"\nanonymous = true\nread = ["t/#"]\nwrite = ["s/#"]\n'
    operators = '[access]\noperators = ["olga"]\n'
    control = 'readwrite = ["$CONTROL/#"]\n'
    keys = await changing.changed(operators + role + control)
    assert keys == ["access.operators", "access.role[0]"]
    assert await code_of(client, "t/1") == DENIED
    assert await code_of(client, "s/1") in (0, 0x10)
    assert not [each for each in await client.waiting() if isinstance(each, Publish)]
    assert changing.gateway.core.policies[0].operators == {"olga"}
    changing.write("")
    await changing.gateway.parts.reload.reload("test")  # the operator has lost the right to ask
    assert await code_of(client, "t/1") == 0x10


async def test_a_listener_gets_rules_of_its_own(changing: Changing, tmp_path: Path) -> None:
    acl = tmp_path / "acl"
    acl.write_text("topic read a/#\n")
    await changing.start("")
    port = free_port()
    other = f"[[listener]]\nport = {port}\n"
    await changing.changed(other)
    client = await changing.at(port).connect("c")
    assert await code_of(client, "a/1") == 0x10
    await changing.changed(f'{other}acl_file = "{acl}"\n')  # a policy that it shared before
    assert (await end_of(client))[0] == ADMINISTRATIVE
    client = await changing.at(port).connect("c")
    assert await code_of(client, "a/1") == DENIED
    other_acl = tmp_path / "other"
    other_acl.write_text("topic readwrite a/#\n")
    await changing.changed(f'{other}acl_file = "{other_acl}"\n')  # in its place
    assert await code_of(client, "a/1") == 0x10
    assert await code_of(await changing.clients.connect("d"), "b/1") == 0x10


async def test_a_unix_socket_changes_its_permissions(changing: Changing, tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    await changing.start("")
    unix = f'[[listener]]\npath = "{path}"\n'
    await changing.changed(unix + "mode = '0600'\n")
    assert mode_of(path) == 0o600
    await changing.changed(unix + "mode = '0660'\n")
    assert mode_of(path) == 0o660
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        await changing.reload(f"{unix}mode = '0600'\n[[listener]]\nport = {port}\n")
    assert mode_of(path) == 0o660
    await changing.changed("")
    assert not listens_at(path)


async def test_a_session_whose_listener_is_gone_has_what_all_others_allow(
    changing: Changing, tmp_path: Path
) -> None:
    acl = tmp_path / "acl"
    acl.write_text("topic read a/#\n")
    await changing.start("")
    port = free_port()
    other = f"[[listener]]\nport = {port}\n"
    await changing.changed(other + f'acl_file = "{acl}"\n')
    properties = Properties(session_expiry_interval=600)
    away = await changing.at(port).connect("away", properties=properties)
    await away.subscribe("#")
    await away.send(Disconnect())
    session = changing.gateway.broker.sessions["away"]
    await until(lambda: session.connection is None)
    assert session.access.restricted
    await changing.changed("")
    await until(lambda: not session.access.restricted)


async def test_a_renewed_certificate_is_told(changing: Changing, tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.write_bytes((TLS / "server.pem").read_bytes())
    key.write_bytes((TLS / "server.key").read_bytes())
    key.chmod(0o600)
    files = f'tls_certificate = "{certificate}"\ntls_key = "{key}"\n'
    await changing.start(f"[[listener]]\nport = {free_port()}\n{files}")
    assert (await changing.reload())["files"] == []
    certificate.write_bytes((TLS / "server.pem").read_bytes() + b"\n")
    (line,) = (await changing.reload())["files"]
    assert line.startswith(f"listener[1].tls_certificate has changed: {certificate}, valid until 2")
    events = await changing.operator.ask("events", kind="reload")
    assert any(each["subject"] == "files" and line in each["text"] for each in events["rows"])
