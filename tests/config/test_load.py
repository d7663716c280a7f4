import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.app.check import check_configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import Reader, bare, load
from gateway.config.settings import (
    BrokerConfig,
    Configuration,
    DurabilityConfig,
    HistoryConfig,
    ListenerConfig,
    RuleConfig,
    SerialConfig,
    SimulatorConfig,
    StorageConfig,
    SubscriptionFilterConfig,
    UplinkConfig,
)

ROOT = Path(__file__).parents[2]

Load = Callable[[str], Configuration]


@pytest.fixture
def read(tmp_path: Path) -> Load:
    """Give a function that writes a configuration and reads it."""

    def written(text: str) -> Configuration:
        path = tmp_path / "gateway.toml"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return written


# --- what is accepted -----------------------------------------------------------------------


def test_an_empty_file_is_a_configuration(read: Load, tmp_path: Path) -> None:
    assert read("") == Configuration(
        file=str(tmp_path / "gateway.toml"),
        gateway_id=socket.gethostname().partition(".")[0],
        listeners=(ListenerConfig("127.0.0.1", 1883, None, None),),
        broker=BrokerConfig(),
        uplink=None,
        serial=(),
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
    assert configuration.uplink == UplinkConfig(
        url="mqtt://fleet.example:1883",
        rules=(RuleConfig("sensors/#", "payload.value > 20", "main", "live"),),
    )


def test_an_uplink_without_a_rule_and_without_an_address(read: Load) -> None:
    assert read("[uplink]").uplink == UplinkConfig()


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
        ListenerConfig("0.0.0.0", 8883, False, "/etc/tidegate/passwords"),
        ListenerConfig("::1", 1),
    )
    assert configuration.broker == BrokerConfig(
        1024,
        3600,
        0,
        10.0,
        65535,
        0,
        1000,
        1000,
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
        maximum_expressions=7,
        maximum_topic_levels=65536,
        maximum_topic_length=65535,
        check_payload_format=True,
        response_information="answers/",
        p2p=True,
    )
    assert configuration.uplink == UplinkConfig(
        directory="/srv/landing",
        username="barn",
        password_file="/etc/tidegate/password",
        ca_file="/etc/ca.pem",
        client_id="x",
        prefix="fleet/tidegate",
        identity=True,
        rules=(RuleConfig("a", None, "alarms", "backlog"),),
    )
    assert configuration.serial == (
        SerialConfig("/dev/ttyUSB0", "json", 9600, "n1"),
        SerialConfig("/dev/ttyUSB1"),
    )
    assert configuration.simulators == (SimulatorConfig("var/a.tty", "n2", 0.5),)


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
    assert bare(1234).listeners == (ListenerConfig("127.0.0.1", 1234),)
    assert bare(1234).uplink is None
    assert not bare(1234).serial
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


# --- what is refused ------------------------------------------------------------------------

BEGINNING = "the beginning of a topic, without wildcards and not with $"
URL = "mqtt://host:port or mqtts://host:port"
PORT = "a whole number from 1 to 65535"
TEXT = "a text that is not empty"
ID = "1 to 64 letters, digits, _ and -, beginning with a letter or digit"
LONG = "x" * 65

MISTAKES: list[tuple[str, str, object, str]] = [
    # unknown keys
    ("[gatway]\nid = 'a'", "gatway", {"id": "a"}, "there are broker, durability, gateway,"),
    ("[gateway]\nname = 'a'", "gateway.name", "a", "unknown key; there are id"),
    (
        "[[listener]]\nprot = 1",
        "listener[0].prot",
        1,
        "allow_anonymous, client_ca, connection_burst",
    ),
    ("[broker]\nx = 1", "broker.x", 1, "unknown key"),
    ("[uplink]\nbatch = 'gzip'", "uplink.batch", "gzip", 'one of "zlib"'),
    ("[uplink]\nbatch = 'zlib'", "uplink.batch", "zlib", "only with url"),
    ("[uplink]\nbudget = '2MB/day'", "uplink.budget", 2_000_000, "only with url"),
    ("[uplink]\nbudget = '2MB'", "uplink.budget", "2MB", "a size a day"),
    ("[uplink]\nschedule = '* * * * * for 1h'", "uplink.schedule", "* * * * * for 1h", "a list"),
    ("[uplink]\npuback_timeout = '0'", "uplink.puback_timeout", "0", "at least 1 s"),
    ("[uplink]\nwindow = 0", "uplink.window", 0, "from 1 to 65535"),
    ("[uplink]\nbatch_messages = 1", "uplink.batch_messages", 1, "from 2 to 10000"),
    ("[uplink]\nbatch_bytes = 12", "uplink.batch_bytes", 12, "at least 1024 bytes"),
    ("[storage]\ndurability = 'batch'", "storage.durability", "batch", '"batch(<ms>)" with 1 to'),
    ("[storage]\ncommit_delay = 1001", "storage.commit_delay", 1001, "from 0 to 1000"),
    ("[[listener]]\ndurability = 'no'", "listener[0].durability", "no", '"commit", "memory" or'),
    ("[[durability]]\nclient = 'a'", "durability[0].class", None, "must be given"),
    (
        "[[durability]]\ntopic = 'a'\nclass = 'batch(0)'",
        "durability[0].class",
        "batch(0)",
        '"batch(<ms>)" with 1 to 60000 ms',
    ),
    ("[[durability]]\nclass = 'memory'", "durability[0].topic", None, "or client must be given"),
    (
        "[[durability]]\ntopic = 'a'\nclient = 'b'\nclass = 'memory'",
        "durability[0].topic",
        "a",
        "either topic or client, not both",
    ),
    ("[uplink]\nurI = 'a'", "uplink.urI", "a", "ca_file, client_id, directory"),
    ("[[uplink.rule]]\ntopik = 'a'", "uplink.rule[0].topik", "a", "lane, stream, topic, where"),
    ("[[serial]]\nport = 'a'\nbauds = 9600", "serial[0].bauds", 9600, "baud, format, node, port"),
    ("[[simulator]]\nport = 'a'\nx = 1", "simulator[0].x", 1, "interval, node, port"),
    ("x = 1", "x", 1, "unknown key"),
    # the wrong kind of thing
    ("gateway = 'barn'", "gateway", "barn", "a table: [gateway]"),
    ("[[gateway]]", "gateway", [{}], "a table: [gateway]"),
    ("uplink = 1", "uplink", 1, "a table: [uplink]"),
    ("[listener]\nport = 1", "listener", {"port": 1}, "[[listener]], one for each"),
    ("listener = [1]", "listener[0]", 1, "a table: [listener[0]]"),
    ("[uplink]\nrule = 'a'", "uplink.rule", "a", "[[uplink.rule]], one for each"),
    ("[serial]\nport = 'a'", "serial", {"port": "a"}, "[[serial]], one for each"),
    # the wrong type
    ("gateway.id = 1", "gateway.id", 1, ID),
    ("[[listener]]\nhost = 1", "listener[0].host", 1, TEXT),
    ("[[listener]]\nport = '1883'", "listener[0].port", "1883", PORT),
    ("[[listener]]\nport = 1883.0", "listener[0].port", 1883.0, PORT),
    ("[[listener]]\nport = true", "listener[0].port", True, PORT),
    ("[[listener]]\nallow_anonymous = 'yes'", "listener[0].allow_anonymous", "yes", "true or"),
    ("[[listener]]\npassword_file = []", "listener[0].password_file", [], TEXT),
    ("[broker]\nsys_interval = '1'", "broker.sys_interval", "1", "a number from 0.1 to 3600"),
    ("[broker]\nsys_interval = true", "broker.sys_interval", True, "a number from 0.1 to 3600"),
    ("[uplink]\nurl = 1", "uplink.url", 1, URL),
    ("[uplink]\nidentity = 1", "uplink.identity", 1, "true or false"),
    ("[[uplink.rule]]\ntopic = 1", "uplink.rule[0].topic", 1, TEXT),
    # out of range
    ("gateway.id = ''", "gateway.id", "", ID),
    ("gateway.id = '-a'", "gateway.id", "-a", ID),
    ("gateway.id = 'a.b'", "gateway.id", "a.b", ID),
    ("gateway.id = 'é'", "gateway.id", "é", ID),
    ('gateway.id = "a\\n"', "gateway.id", "a\n", ID),
    (f"gateway.id = '{LONG}'", "gateway.id", LONG, ID),
    ("[[listener]]\nhost = ''", "listener[0].host", "", TEXT),
    ('[[listener]]\nhost = "a\\u0000"', "listener[0].host", "a\0", TEXT),
    ("[[listener]]\nport = 0", "listener[0].port", 0, PORT),
    ("[[listener]]\nport = 65536", "listener[0].port", 65536, PORT),
    ("[broker]\nmaximum_packet_size = 1023", "broker.maximum_packet_size", 1023, "from 1024 to"),
    ("[broker]\nconnect_timeout = 0", "broker.connect_timeout", 0, "from 1 to 3600"),
    ("[broker]\ntopic_alias_maximum = -1", "broker.topic_alias_maximum", -1, "from 0 to 65535"),
    (
        "[broker]\ntopic_alias_maximum_out = 65536",
        "broker.topic_alias_maximum_out",
        65536,
        "from 0 to 65535",
    ),
    (
        "[broker]\ntopic_alias_client_bytes = -1",
        "broker.topic_alias_client_bytes",
        -1,
        "from 0 to 1073741824",
    ),
    ("[broker]\nreceive_maximum = 0", "broker.receive_maximum", 0, "from 1 to 65535"),
    ("[broker]\nmaximum_inflight = 65536", "broker.maximum_inflight", 65536, "from 1 to 65535"),
    ("[broker]\nmaximum_topic_length = 65536", "broker.maximum_topic_length", 65536, "to 65535"),
    ("[broker]\nmaximum_queued_bytes = 1", "broker.maximum_queued_bytes", 1, "from 1024 to"),
    ("[broker]\nresponse_information = ''", "broker.response_information", "", BEGINNING),
    ("[broker]\nresponse_information = '$a'", "broker.response_information", "$a", BEGINNING),
    ("[broker]\nresponse_information = 'a/+'", "broker.response_information", "a/+", BEGINNING),
    ("[broker]\nresponse_information = 1", "broker.response_information", 1, BEGINNING),
    ("[broker]\np2p = 1", "broker.p2p", 1, "true or false"),
    ("[broker]\nsys_interval = 0.05", "broker.sys_interval", 0.05, "from 0.1 to 3600"),
    ("[broker]\nsys_interval = inf", "broker.sys_interval", float("inf"), "from 0.1 to 3600"),
    ("[[uplink.rule]]\ntopic = ''", "uplink.rule[0].topic", "", TEXT),
    ("[[uplink.rule]]\ntopic = 'a'\nstream = 'a b'", "uplink.rule[0].stream", "a b", "1 to 16"),
    ("[[uplink.rule]]\ntopic = 'a'\nlane = 'fast'", "uplink.rule[0].lane", "fast", '"live", "ba'),
    ("[[serial]]\nport = 'a'\nformat = 'xml'", "serial[0].format", "xml", '"frames", "json"'),
    ("[[serial]]\nport = 'a'\nbaud = 49", "serial[0].baud", 49, "from 50 to 4000000"),
    ("[[simulator]]\nport = 'a'\ninterval = 0", "simulator[0].interval", 0, "from 0.01 to 3600"),
    ("[uplink]\nprefix = ''", "uplink.prefix", "", "topic levels"),
    ("[uplink]\nprefix = '/a'", "uplink.prefix", "/a", "topic levels"),
    ("[uplink]\nprefix = '$a'", "uplink.prefix", "$a", "topic levels"),
    ("[uplink]\nprefix = 'a/+'", "uplink.prefix", "a/+", "topic levels"),
    # missing, or in each other's way
    ("[[serial]]", "serial[0].port", None, "must be given"),
    ("[[simulator]]", "simulator[0].port", None, "must be given"),
    ("[storage]\nwrite_budget = 5", "storage.write_budget", 5, 'such as "200MB/day"'),
    ("[storage]\nendurance = '20'", "storage.endurance", "20", 'such as "500kB"'),
    ("[history]\nkeep = 5", "history.keep", 5, 'a text such as "90s", "30m", "2h" or "7d", or "0"'),
    ("[history]\nkeep = '5'", "history.keep", "5", 'a text such as "90s"'),
    ("[history]\nkeep = '1h30m'", "history.keep", "1h30m", 'a text such as "90s"'),
    ("[history]\nmaximum_bytes = 1", "history.maximum_bytes", 1, "from 65536 to"),
    (
        "[[subscription_filter]]\nclient = 'a'\nwhere = 'b'",
        "subscription_filter[0].filter",
        None,
        "must be given",
    ),
    ("[[uplink.rule]]\nwhere = 'a'", "uplink.rule[0].topic", None, "must be given"),
    (
        "[broker]\ntopic_alias_soft_bytes = 9\ntopic_alias_hard_bytes = 8",
        "broker.topic_alias_soft_bytes",
        9,
        "at most topic_alias_hard_bytes, which is 8",
    ),
    ("[uplink]\nurl = 'mqtt://a'\ndirectory = 'b'", "uplink.directory", "b", "not both"),
]

BAD_URLS = [
    "",
    "fleet.example",
    "fleet.example:1883",
    "http://fleet.example",
    "mqtt:fleet.example",
    "mqtt://",
    "mqtt://:1883",
    "mqtt://fleet.example:0",
    "mqtt://fleet.example:65536",
    "mqtt://fleet.example:abc",
    "mqtt://fleet.example:-1",
    "mqtt://[::1",
    "mqtt://fleet example",
    "mqtt://fleet.example\\n",
    "mqtt://anna:secret@fleet.example",
    "mqtt://anna@fleet.example",
    "mqtt://fleet.example/topic",
    "mqtt://fleet.example?x=1",
    "mqtt://fleet.example#x",
]


@pytest.mark.parametrize(("text", "key", "value", "allowed"), MISTAKES)
def test_a_mistake_names_file_key_value_and_what_is_allowed(
    read: Load, tmp_path: Path, text: str, key: str, value: object, allowed: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(text)
    error = raised.value
    assert (error.file, error.key, error.value) == (str(tmp_path / "gateway.toml"), key, value)
    assert allowed in error.allowed
    assert str(error) == f"{error.file}: {key} = {value!r} is not allowed: {error.allowed}"
    assert "\n" not in str(error)


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_of_the_fleet_that_is_none(read: Load, url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(f'[uplink]\nurl = "{url}"')
    assert raised.value.key == "uplink.url"
    assert raised.value.allowed.startswith(URL)


@pytest.mark.parametrize(
    "url",
    ["mqtt://fleet.example", "mqtts://10.0.0.1:8883/", "mqtt://[fe80::1]:1", "mqtt://a:65535"],
)
def test_addresses_of_the_fleet(read: Load, url: str) -> None:
    uplink = read(f'[uplink]\nurl = "{url}"').uplink
    assert uplink is not None
    assert uplink.url == url


def test_a_password_in_an_address_is_not_repeated(read: Load) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read('[uplink]\nurl = "mqtt://barn:s3cret@fleet:1883"\n')
    assert "mqtt://***@fleet:1883" in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path / "none.toml")
    assert str(raised.value) == f"{tmp_path / 'none.toml'}: No such file or directory"


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"^{tmp_path}: Is a directory$"):
        load(tmp_path)


def test_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"# \xff")
    with pytest.raises(ConfigurationError, match=f"^{path}: not UTF-8 at byte 2$"):
        load(path)


@pytest.mark.parametrize("text", ["[gateway", "a = ", "a = 1\na = 2", "a = " + "[" * 5_000])
def test_not_toml(read: Load, tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{tmp_path / 'gateway.toml'}: not TOML: ."):
        read(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "port", "rule", "topic", "url"]), inner, max_size=3
            )
        ),
        max_leaves=8,
    ),
    st.sampled_from(["gateway", "listener", "broker", "uplink", "serial", "simulator"]),
)
def test_whatever_a_file_holds_there_is_one_kind_of_error(value: object, section: str) -> None:
    with contextlib.suppress(ConfigurationError):
        assert isinstance(Reader("a file").configuration({section: value}), Configuration)


def test_durability(read: Load) -> None:
    assert read("").storage == StorageConfig("commit", 5)
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
    assert configuration.storage == StorageConfig("batch(50)", 0)
    assert configuration.listeners == (ListenerConfig(durability="memory"),)
    assert configuration.durability == (
        DurabilityConfig("commit", client="sensor-*"),
        DurabilityConfig("batch(1)", topic="a/#"),
    )


def test_subscription_filters(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[[subscription_filter]]\nclient = 'p-*'\nfilter = 'a/#'\nwhere = 'qos = 1'")
    expected = SubscriptionFilterConfig("p-*", "a/#", "qos = 1")
    assert load(path).subscription_filters == (expected,)


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90s", 90), ("30m", 1800), ("2h", 7200), ("7d", 604_800)]
)
def test_history(text: str, seconds: int, tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(f"[history]\nkeep = '{text}'")
    assert load(path).history == HistoryConfig(keep=seconds)
    path.write_text("")
    assert load(path).history == HistoryConfig(0, 256 * 1024 * 1024)
