"""The listeners of a running gateway: made from its configuration, and reloaded."""

import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.access.acl_file import AclRules, parse
from gateway.app import listeners as file_changes
from gateway.app.listeners import NAMED, changed_rules, changed_users, check_listener
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.extras import how_to_install
from gateway.mqtt.packets import Publish
from gateway.pieces import LINES, complete
from gateway.server.passwords.file import PasswordFile
from gateway.server.passwords.hashing import Password
from gateway.settings.listener import ListenerSettings
from tests.conformance.support import wire
from tests.conformance.support.peer import Peer
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients
from tests.support.table import table
from tests.support.waiting import until

ALARM = "$SYS/broker/tidegate/alarm/listener"

CONFIG = """
[gateway]
id = "barn"
[[listener]]
[[listener]]
port = {tls}
tls_certificate = "server.pem"
[[listener]]
path = "mqtt.sock"
[[listener]]
port = {websocket}
websocket = true
tls_certificate = "server.pem"
"""


class Authorities:
    """Writes the gateway's certificate anew, each time signed by another authority."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def renew(self) -> str:
        """Return the file of the authority that signed the certificate there is now."""
        self._count += 1
        authority = Authority(self._folder, f"authority-{self._count}")
        pair = authority.issue("localhost")
        both = Path(pair.certificate).read_bytes() + Path(pair.key).read_bytes()
        (self._folder / "server.pem").write_bytes(both)
        return authority.ca_file


@pytest.fixture
def authorities(tmp_path: Path) -> Authorities:
    return Authorities(tmp_path)


@pytest.fixture
def tls() -> int:
    return free_port()


@pytest.fixture
def gateway(tmp_path: Path, tls: int, authorities: Authorities) -> Iterator[GatewayProcess]:
    authorities.renew()
    config = CONFIG.format(tls=tls, websocket=free_port())
    process = GatewayProcess(tmp_path, config).start()
    yield process
    process.kill()


def trusted(port: int, ca_file: str) -> bool:
    """Return whether the listener's certificate was signed by this authority."""
    context = ssl.create_default_context(cafile=ca_file)
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        try:
            context.wrap_socket(connection, server_hostname="localhost").close()
        except ssl.SSLCertVerificationError:
            return False
    return True


async def test_a_hangup_reads_certificates_again(
    gateway: GatewayProcess, tls: int, authorities: Authorities, tmp_path: Path
) -> None:
    assert gateway.process is not None
    clients = Clients(gateway.port)
    watcher = await clients.connect("watcher")
    await watcher.subscribe(ALARM)
    ca_file = authorities.renew()
    assert not trusted(tls, ca_file)
    gateway.process.send_signal(signal.SIGHUP)
    until(lambda: trusted(tls, ca_file), "the new certificate is served", gateway.log)
    (tmp_path / "server.pem").write_text("garbage")
    gateway.process.send_signal(signal.SIGHUP)
    alarm = await watcher.receive()
    while isinstance(alarm, Publish) and not alarm.payload:
        alarm = await watcher.receive()  # that there was none
    assert isinstance(alarm, Publish)
    assert "listener[3].tls_certificate" in json.loads(alarm.payload)["text"]
    assert trusted(tls, ca_file)
    assert f"127.0.0.1:{tls} continues with its old file" in gateway.log()
    authorities.renew()
    gateway.process.send_signal(signal.SIGHUP)
    ended = await watcher.take(Publish)
    assert not ended.payload
    await clients.close()
    assert gateway.stop() == 0


def test_a_wrong_certificate_keeps_no_removed_right(
    tmp_path: Path, authorities: Authorities
) -> None:
    """A fault of one file of a listener leaves its other files to be read."""
    ca_file, acl = authorities.renew(), tmp_path / "acl"
    acl.write_text("topic readwrite #\n")
    config = """
    [[listener]]
    tls_certificate = "server.pem"
    acl_file = "acl"
    allow_anonymous = true
    """
    gateway = GatewayProcess(tmp_path, config).start()
    context = ssl.create_default_context(cafile=ca_file)
    with socket.create_connection(("127.0.0.1", gateway.port), 60) as connection:
        peer = Peer(context.wrap_socket(connection, server_hostname="localhost"), wire.MQTT_5)
        peer.connect("client").publish("a", b"", 1)
        acl.write_text("topic readwrite b\n")
        (tmp_path / "server.pem").write_text("garbage")
        assert gateway.process is not None
        gateway.process.send_signal(signal.SIGHUP)
        until(lambda: "is refused" in gateway.log(), "it is reported", gateway.log)
        peer.send(wire.publish(wire.MQTT_5, "a", b"", 1, 2))
        assert peer.receive()[4] == 0x87
        peer.close()
    assert trusted(gateway.port, ca_file)
    assert "tls_certificate has changed" not in gateway.log()
    gateway.kill()


@pytest.mark.uncovered
def test_the_log_says_where_it_listens_and_the_socket_is_gone_at_the_end(
    gateway: GatewayProcess, tls: int, tmp_path: Path
) -> None:
    assert (tmp_path / "mqtt.sock").is_socket()
    until(lambda: "listens on" in gateway.log(), "the gateway says that it is ready")
    log = gateway.log()
    assert f"listens on 127.0.0.1:{gateway.port}, 127.0.0.1:{tls} (TLS), mqtt.sock, " in log
    assert "(TLS and WebSocket)" in log
    assert gateway.stop() == 0
    assert not (tmp_path / "mqtt.sock").exists()


@pytest.mark.uncovered
def test_a_socket_that_a_killed_gateway_left_does_not_stop_the_next(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    gateway.kill()
    assert (tmp_path / "mqtt.sock").is_socket()
    gateway.start()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "mqtt.sock"))
    assert gateway.stop() == 0


@pytest.mark.parametrize("key", ["password_file", "tls_certificate"])
def test_a_check_reads_the_files(tmp_path: Path, key: str) -> None:
    listener = ListenerSettings(**{key: str(tmp_path / "none")})  # type: ignore[arg-type]  # by name
    with pytest.raises(ConfigurationError, match="No such file"):
        check_listener(Configuration("file", "id", listeners=(ListenerSettings(), listener)), 1)


def test_a_check_of_what_works(tmp_path: Path) -> None:
    check_listener(Configuration("file", "id", listeners=(ListenerSettings(websocket=True),)), 0)


WITHOUT_WEBSOCKETS = """
import sys
sys.modules["websockets"] = None
from gateway.cli.main import main
raise SystemExit(main())
"""


@pytest.mark.parametrize("command", ["check", "run --config"])
def test_without_its_extra_a_websocket_listener_says_what_to_install(
    tmp_path: Path, command: str
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[gateway]\nid = 'a'\n[[listener]]\nwebsocket = true\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_WEBSOCKETS, *command.split(), str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"tidegate: a WebSocket listener needs its extra: {how_to_install('websocket')}\n"
    )


TWO = "user anna\ntopic read a\nuser ben\ntopic write b\n"

RULES = [
    ("", "", ""),
    (TWO, TWO, ""),
    (TWO, f"\n\n{TWO}", ""),
    (TWO, "user ben\ntopic write b\nuser anna\ntopic read a\n", ""),
    ("", "topic read a\n", "1 rules came, 0 went: without a user name +1 -0"),
    (TWO, "user ben\ntopic b\n", "1 rules came, 2 went: user 'anna' +0 -1, user 'ben' +1 -1"),
    ("pattern read a\n", "", "0 rules came, 1 went: everybody +0 -1"),
    ("", f"user {'x' * 50}\ntopic a\n", f"1 rules came, 0 went: user '{'x' * 40}' +1 -0"),
]


@table("old, new, said", RULES)
def test_changed_rules(old: str, new: str, said: str) -> None:
    assert complete(changed_rules(parse(old), parse(new))) == said


def test_files_that_come_and_go() -> None:
    assert complete(changed_rules(None, None)) == ""
    assert complete(changed_rules(None, parse(TWO))).startswith("2 rules came")
    assert complete(changed_rules(parse(TWO), None)).startswith("0 rules came, 2 went")


def test_a_line_is_bounded_and_made_in_pieces() -> None:
    rules = parse("".join(f"user {each:04}\ntopic a\n" for each in range(3 * LINES)))
    pieces = changed_rules(AclRules(), rules)
    assert sum(1 for _ in pieces) == 3
    line = complete(changed_rules(AclRules(), rules))
    assert line.endswith(f" and {3 * LINES - NAMED} more")
    assert len(line) < 100 + NAMED * (file_changes.SHOWN + 20)


def test_changed_users() -> None:
    one, other = Password("7", 1, b"a", b"x"), Password("7", 1, b"b", b"x")
    old = PasswordFile({"anna": one, "ben": one, "cleo": one})
    assert changed_users(old, old) == ""
    new = PasswordFile({"anna": one, "ben": other, "dora": one})
    assert changed_users(old, new) == (
        "1 users came: 'dora', 1 users went: 'cleo', 1 users have another password: 'ben'"
    )
