import socket
from pathlib import Path

import pytest

from gateway.app.checks.check import check_configuration
from gateway.bridges.serial.serial_bridge import KIND
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import bare, load
from gateway.settings.broker import BrokerSettings, SubscriptionFilter
from gateway.settings.listener import ListenerSettings
from gateway.settings.simulator import SimulatorSettings
from gateway.settings.storage import DurabilityRule, HistorySettings, StorageSettings
from gateway.settings.uplink import RuleSettings, UplinkSettings
from tests.support.configurations import Load

ROOT = Path(__file__).parents[2]


# --- what is accepted -----------------------------------------------------------------------


def test_an_empty_file_is_a_configuration(read: Load, tmp_path: Path) -> None:
    assert read("") == Configuration(
        file=str(tmp_path / "gateway.toml"),
        gateway_id=socket.gethostname().partition(".")[0],
        listeners=(ListenerSettings("127.0.0.1", 1883, None, None),),
        broker=BrokerSettings(),
        uplinks=(),
        bridges=(),
        simulators=(),
    )


def test_the_smallest_that_sends_something_up(read: Load) -> None:
    configuration = read(
        """
        [gateway]
        id = "barn"
        [uplink]
        url = "mqtt://fleet.example:1883"
        [[uplink.rule]]
        topic = "sensors/#"
        where = "payload.value > 20"
        """
    )
    assert configuration.gateway_id == "barn"
    assert configuration.uplinks[0] == UplinkSettings(
        urls=("mqtt://fleet.example:1883",),
        rules=(RuleSettings("sensors/#", "payload.value > 20", "main", "live"),),
    )


def test_an_uplink_without_a_rule_and_without_an_address(read: Load) -> None:
    assert read("[uplink]").uplinks == (UplinkSettings(),)


EVERYTHING = """
gateway.id = "Barn_1-a"
[[listener]]
host = "0.0.0.0"
port = 8883
allow_anonymous = false
password_file = "/etc/tidegate/passwords"
[[listener]]
host = "::1"
port = 1
[broker]
maximum_packet_size = 1024
maximum_connect_size = 2048
connect_timeout = 3600
topic_alias_maximum = 0
sys_interval = 10
topic_alias_maximum_out = 65535
topic_alias_client_bytes = 0
topic_alias_soft_bytes = 1000
topic_alias_hard_bytes = 1000
receive_maximum = 20
maximum_session_expiry = 0
maximum_persistent_sessions = 0
maximum_inflight = 1
maximum_queued_messages = 1
maximum_queued_bytes = 1024
maximum_queued_bytes_total = 2048
maximum_subscriptions = 2
maximum_subscription_bytes = 4096
maximum_route_bytes = 0
maximum_filtered_subscriptions = 0
maximum_shared_subscriptions = 3
maximum_expressions = 7
maximum_topic_levels = 65536
maximum_topic_length = 65535
check_payload_format = true
response_information = "answers/"
p2p = true
[uplink]
directory = "/srv/landing"
username = "barn"
password_file = "/etc/tidegate/password"
ca_file = "/etc/ca.pem"
client_id = "x"
prefix = "fleet/tidegate/"
identity = true
[[uplink.rule]]
topic = "a"
stream = "alarms"
lane = "backlog"
[[serial]]
port = "/dev/ttyUSB0"
format = "json"
baud = 9600
node = "n1"
[[serial]]
port = "/dev/ttyUSB1"
[[simulator]]
port = "var/a.tty"
node = "n2"
interval = 0.5
"""


def test_everything(read: Load) -> None:
    configuration = read(EVERYTHING)
    assert configuration.gateway_id == "Barn_1-a"
    assert configuration.listeners == (
        ListenerSettings("0.0.0.0", 8883, False, "/etc/tidegate/passwords"),
        ListenerSettings("::1", 1),
    )
    assert configuration.broker == BrokerSettings(
        1024,
        3600,
        0,
        10.0,
        65535,
        0,
        1000,
        1000,
        maximum_connect_size=2048,
        receive_maximum=20,
        maximum_session_expiry=0,
        maximum_persistent_sessions=0,
        maximum_inflight=1,
        maximum_queued_messages=1,
        maximum_queued_bytes=1024,
        maximum_queued_bytes_total=2048,
        maximum_subscriptions=2,
        maximum_subscription_bytes=4096,
        maximum_route_bytes=0,
        maximum_filtered_subscriptions=0,
        maximum_shared_subscriptions=3,
        maximum_expressions=7,
        maximum_topic_levels=65536,
        maximum_topic_length=65535,
        check_payload_format=True,
        response_information="answers/",
        p2p=True,
    )
    assert configuration.uplinks[0] == UplinkSettings(
        directory="/srv/landing",
        username="barn",
        password_file="/etc/tidegate/password",
        ca_file="/etc/ca.pem",
        client_id="x",
        prefix="fleet/tidegate",
        identity=True,
        rules=(RuleSettings("a", None, "alarms", "backlog"),),
    )
    assert [(each.kind, each.name, each.settings) for each in configuration.bridges] == [
        (KIND, "ttyUSB0", SerialSettings(port="/dev/ttyUSB0", format="json", baud=9600, node="n1")),
        (KIND, "ttyUSB1", SerialSettings(port="/dev/ttyUSB1")),
    ]
    assert configuration.simulators == (SimulatorSettings("var/a.tty", "n2", 0.5),)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda p: p.name)
def test_every_example_is_a_configuration(path: Path) -> None:
    check_configuration(load(path))


LOOPBACK = ["127.0.0.1", "127.1.2.3", "localhost", "::1"]
BEYOND = ["0.0.0.0", "::", "192.168.1.5", "::1:2", "127.0.0.1.example.com", "localhost.example.com"]


@pytest.mark.parametrize("host", LOOPBACK)
def test_on_loopback_nobody_need_be_named(read: Load, host: str) -> None:
    assert read(f'[[listener]]\nhost = "{host}"').listeners[0].host == host


@pytest.mark.parametrize("host", BEYOND)
def test_beyond_loopback_users_are_named_or_everyone_is_let_in(read: Load, host: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(f'[[listener]]\n[[listener]]\nhost = "{host}"')
    assert raised.value.key == "listener[1].host"
    assert raised.value.value == host
    assert "password_file" in raised.value.allowed
    assert "allow_anonymous = true" in raised.value.allowed
    for setting in ('password_file = "p"', "allow_anonymous = true", "allow_anonymous = false"):
        assert read(f'[[listener]]\nhost = "{host}"\n{setting}').listeners


def test_a_bare_broker_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare(1234).listeners == (ListenerSettings("127.0.0.1", 1234),)
    assert bare(1234).uplinks == ()
    assert not bare(1234).bridges
    assert not bare(1234).simulators
    monkeypatch.setattr(socket, "gethostname", lambda: "a host.example")
    assert bare(1234).gateway_id == "tidegate"
    monkeypatch.setattr(socket, "gethostname", lambda: "barn-1.example")
    assert bare(1234).gateway_id == "barn-1"


def test_a_host_name_that_is_no_gateway_id_stops_the_start(
    read: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "a host.example")
    with pytest.raises(ConfigurationError) as raised:
        read("")
    assert (raised.value.key, raised.value.value) == ("gateway.id", "a host")
    assert read('gateway.id = "barn"').gateway_id == "barn"


def test_durability(read: Load) -> None:
    assert read("").storage == StorageSettings("commit", 5)
    configuration = read(
        """
        [storage]
        durability = "batch(50)"
        commit_delay = 0

        [[listener]]
        durability = "memory"

        [[durability]]
        client = "sensor-*"
        class = "commit"

        [[durability]]
        topic = "a/#"
        class = "batch(1)"
        """
    )
    assert configuration.storage == StorageSettings("batch(50)", 0)
    assert configuration.listeners == (ListenerSettings(durability="memory"),)
    assert configuration.durability == (
        DurabilityRule("commit", client="sensor-*"),
        DurabilityRule("batch(1)", topic="a/#"),
    )


def test_subscription_filters(read: Load) -> None:
    text = "[[subscription_filter]]\nclient = 'p-*'\nfilter = 'a/#'\nwhere = 'qos = 1'"
    expected = SubscriptionFilter("p-*", "a/#", "qos = 1")
    assert read(text).subscription_filters == (expected,)


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90s", 90), ("30m", 1800), ("2h", 7200), ("7d", 604_800)]
)
def test_history(text: str, seconds: int, read: Load) -> None:
    assert read(f"[history]\nkeep = '{text}'").history == HistorySettings(keep=seconds)
    assert read("").history == HistorySettings(0, 256 * 1024 * 1024)


def test_two_entries_of_one_series_are_refused_with_both_places(tmp_path: Path) -> None:
    register = '[[modbus.register]]\naddress = %d\nquantity = "voltage"\nnode = "m"\n%s\n'
    head = '[[modbus]]\nport = "tcp://192.0.2.1"\n'
    file = tmp_path / "tidegate.toml"
    file.write_text(head + register % (0, 'instance = "l1"') + register % (2, 'instance = "l2"'))
    load(file)
    pin = '[[gpio]]\npin = "GPIO4"\nnode = "m"\nquantity = "voltage"\n'
    alias = (register % (2, "")).replace("voltage", "volt")
    for second in (register % (2, ""), alias, pin):
        file.write_text(head + register % (0, "") + second)
        with pytest.raises(ConfigurationError, match=r"sensors/m/voltage.*register") as reported:
            load(file)
        assert "modbus[0].register[0].quantity has: name a node or instance" in str(reported.value)
