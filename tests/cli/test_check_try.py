"""`tidegate check --try` against a real Mosquitto, and against what is none."""

import socket
import subprocess
import threading
from pathlib import Path

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from gateway.cli.main import main
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority, Pair
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import listens, until

CONFIG = """
[gateway]
id = "barn"
[uplink]
url = "{url}"
{keys}
[[uplink.rule]]
topic = "sensors/#"
retain = true
[[uplink.down]]
topic = "commands/{{gateway}}/#"
[[uplink.down]]
topic = "secret/#"
"""
LIMITS = """
retain_available false
max_packet_size 20000
max_keepalive 20
max_topic_alias 5
"""
NO_WILDCARDS = b"\x20\x05\0\0\x02\x28\0"
"""A CONNACK with Wildcard Subscription Available 0."""


@pytest.fixture(autouse=True)
def _no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.own_gateway.socket_url", lambda: None)


def _try(folder: Path, url: str, capsys: pytest.CaptureFixture[str], keys: str = "") -> str:
    """Return what is said, with the exit status in front."""
    path = folder / "gateway.toml"
    path.write_text(CONFIG.format(url=url, keys=keys))
    status = main(["check", "--try", str(path)])
    return f"{status}\n{capsys.readouterr().out}"


@pytest.mark.mosquitto
def test_it_says_what_the_other_side_allows_and_what_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = Mosquitto(tmp_path, LIMITS)
    fleet.start()
    waits = FleetCollector(fleet.port, "commands/barn/#", "tidegate-barn")
    waits.close()
    watcher = FleetCollector(fleet.port, "#", "watcher")
    watcher.publish("commands/barn/x", b"for the gateway")
    said = _try(tmp_path, f"mqtt://127.0.0.1:{fleet.port}", capsys)
    again = FleetCollector(fleet.port, "commands/barn/#", "tidegate-barn")
    watcher.publish("last", b"")
    assert [each.topic for each in watcher.received] == ["commands/barn/x", "last"]
    assert [each.payload for each in again.received] == [b"for the gateway"]
    for line in (
        "connected with MQTT 5; session of the gateway: kept",
        "retained messages: no",
        "Maximum Packet Size 20,000 bytes",
        "Topic Alias Maximum 5",
        "fails: uplink.rule[0].retain: the broker retains nothing",
        "fails: messages of more than 20,000 bytes are not sent",
    ):
        assert line in said, said
    assert "commands/barn" not in said
    assert said.startswith("1\n")
    for each in (watcher, again):
        each.close()
    fleet.kill()


def test_what_does_not_come_down_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, options = socket.create_server(("127.0.0.1", 0)), set[int]()

    def serve() -> None:
        with server, server.accept()[0] as client:
            client.recv(4096)
            client.sendall(NO_WILDCARDS)
            while data := client.recv(4096):
                if data[0] == 0x82:
                    options.add(data[-1])
                    client.sendall(b"\x90\x04" + data[2:4] + b"\0\x87")

    threading.Thread(target=serve, daemon=True).start()
    said = _try(tmp_path, f"mqtt://127.0.0.1:{server.getsockname()[1]}", capsys)
    assert "fails: nothing is received on 'commands/barn/#': Not authorized (0x87)" in said
    assert "fails: nothing is received on 'secret/#': Not authorized (0x87)" in said
    assert "down 'secret/#': the broker accepts no topic filters with wildcards" in said
    # QoS 1, No Local and Retain As Published, as the gateway; no retained messages
    assert options == {0x2D}


@pytest.mark.mosquitto
@pytest.mark.parametrize("keys", ["", 'mqtt = "3.1.1"\nplain = true\nreports = false'])
def test_a_session_that_it_began_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: str
) -> None:
    """Otherwise the gateway's first subscription is none, and brings no retained messages."""
    fleet = Mosquitto(tmp_path)
    fleet.start()
    said = _try(tmp_path, f"mqtt://127.0.0.1:{fleet.port}", capsys, keys)
    assert said.startswith("0\n"), said
    present: list[bool] = []
    client = Client(
        CallbackAPIVersion.VERSION2, "tidegate-barn", protocol=MQTTProtocolVersion.MQTTv5
    )
    client.on_connect = lambda _client, _data, flags, *_: present.append(flags.session_present)
    client.connect("127.0.0.1", fleet.port, clean_start=False)
    client.loop_start()
    until(lambda: bool(present), "connected")
    client.disconnect()
    client.loop_stop()
    assert present == [False]
    fleet.kill()


@pytest.mark.mosquitto
def test_beside_a_running_gateway_it_takes_another_client_identifier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Mosquitto(tmp_path)
    fleet.start()
    monkeypatch.setattr("gateway.cli.own_gateway.socket_url", lambda: "mqtt+unix:///x.sock")
    said = _try(tmp_path, f"mqtt://127.0.0.1:{fleet.port}", capsys, 'client_id = "me"')
    assert said.startswith("0\n"), said
    assert "tried as 'me-try'" in said
    assert "me-try" in (tmp_path / "mosquitto" / "log").read_text()
    fleet.kill()


def test_without_a_url_there_is_nothing_to_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[uplink]\n")
    assert main(["check", "--try", str(path)]) == 0
    assert "no uplink has a url" in capsys.readouterr().out


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def _with_tls(folder: Path, pair: Pair, extra: str = "") -> Mosquitto:
    folder.joinpath("m").mkdir()
    port = free_port()
    lines = f"listener {port} 127.0.0.1\nkeyfile {pair.key}\ncertfile {pair.certificate}\n{extra}"
    fleet = Mosquitto(folder / "m", lines)
    fleet.start()
    fleet.port = port
    return fleet


@pytest.mark.mosquitto
@pytest.mark.parametrize(
    ("days", "host", "trusted", "said"),
    [
        (-1, "127.0.0.1", True, "its certificate has expired, by the clock here"),
        (1, "127.0.0.2", True, "its certificate is for another address"),
        (1, "127.0.0.1", False, "nobody here trusts the authority of its certificate"),
    ],
)
def test_faults_of_a_certificate_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    authority: Authority,
    days: int,
    host: str,
    trusted: bool,
    said: str,
) -> None:
    fleet = _with_tls(tmp_path, authority.issue("localhost", days=days))
    other = Authority(tmp_path, "other")
    ca_file = authority.ca_file if trusted else other.ca_file
    if host != "127.0.0.1":
        _forward(host, fleet.port)
    output = _try(tmp_path, f"mqtts://{host}:{fleet.port}", capsys, f'ca_file = "{ca_file}"')
    assert f"fails: mqtts://{host}:{fleet.port}: {host}:{fleet.port}: {said}" in output
    fleet.kill()


@pytest.mark.mosquitto
def test_a_broker_that_wants_a_certificate_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], authority: Authority
) -> None:
    extra = f"cafile {authority.ca_file}\nrequire_certificate true\n"
    fleet = _with_tls(tmp_path, authority.issue("localhost"), extra)
    url = f"mqtts://localhost:{fleet.port}"
    keys = f'ca_file = "{authority.ca_file}"'
    # where Mosquitto has closed before its alert is read, the kernel says "reset" alone
    until(
        lambda: "it requires a certificate: set tls_" in _try(tmp_path, url, capsys, keys), "named"
    )
    fleet.kill()


def test_a_server_that_refuses_the_protocols_of_alpn_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], authority: Authority
) -> None:
    pair, port = authority.issue("localhost"), free_port()
    words = ["-accept", f"127.0.0.1:{port}", "-cert", pair.certificate, "-key", pair.key]
    server = subprocess.Popen(
        ["openssl", "s_server", *words, "-alpn", "mqtt", "-quiet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: listens(port), "openssl listens")
    url, keys = f"mqtts://localhost:{port}", f'ca_file = "{authority.ca_file}"'
    output = _try(tmp_path, url, capsys, f'{keys}\nalpn = "x-amzn-mqtt-ca"')
    assert output.startswith("1\n")
    assert f"fails: {url}: localhost:{port}: it speaks no protocol that alpn names" in output
    server.kill()
    server.communicate()


@pytest.mark.mosquitto
def test_a_port_without_tls_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Mosquitto(tmp_path)
    fleet.start()
    output = _try(tmp_path, f"mqtts://localhost:{fleet.port}", capsys)
    assert "TLS" in output, output
    assert output.startswith("1\n")
    fleet.kill()


@pytest.mark.mosquitto
def test_each_of_several_addresses_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Mosquitto(tmp_path)
    fleet.start()
    monkeypatch.setattr("gateway.cli.own_gateway.socket_url", lambda: "mqtt+unix:///x.sock")
    dead, path = free_port(), tmp_path / "gateway.toml"
    path.write_text(
        f'[uplink]\nurl = ["mqtt://127.0.0.1:{dead}", "mqtt://127.0.0.1:{fleet.port}"]\n'
    )
    assert main(["check", "--try", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"fails: mqtt://127.0.0.1:{dead}: " in said
    assert f"mqtt://127.0.0.1:{fleet.port}: connected with MQTT 5" in said
    assert said.count("a gateway runs here: tried as ") == 1
    fleet.kill()


def test_a_dead_address_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = _try(tmp_path, f"mqtt://127.0.0.1:{free_port()}", capsys)
    assert "Connection refused" in output
    assert output.startswith("1\n")


def _forward(host: str, port: int) -> None:
    """Have another address of this machine lead to a port of 127.0.0.1, for one connection."""
    server = socket.create_server((host, port))

    def copy(source: socket.socket, target: socket.socket) -> None:
        for data in iter(lambda: _received(source), b""):
            target.sendall(data)

    def serve() -> None:
        with server, server.accept()[0] as one, socket.create_connection(("127.0.0.1", port)) as up:
            back = threading.Thread(target=copy, args=(up, one), daemon=True)
            back.start()
            copy(one, up)
            up.shutdown(socket.SHUT_WR)
            back.join()

    threading.Thread(target=serve, daemon=True).start()


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(4096)
    except OSError:
        return b""
