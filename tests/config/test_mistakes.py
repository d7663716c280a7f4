"""Mistakes in a configuration, and what is said of each."""

from pathlib import Path

import pytest

from gateway.config.errors import ConfigurationError
from tests.support.configurations import URL, Load
from tests.support.table import table

AT = "url = 'mqtt://a'"
BEGINNING = "the beginning of a topic, without wildcards and not with $"
PORT = "a whole number from 1 to 65535"
TEXT = "a text that is not empty"
ID = "1 to 64 letters, digits, _ and -, beginning with a letter or digit"
LONG = "x" * 65

MISTAKES: list[tuple[str, str, object, str]] = [
    # unknown keys
    (
        "[gatway]\nid = 'a'",
        "gatway",
        {"id": "a"},
        "there are access, broker, channel, delivery, durability, gateway,",
    ),
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
    *(
        (
            f"[[listener]]\nwebsocket = true\nwebsocket_paths = {paths}",
            "listener[0].websocket_paths",
            paths,
            "a list of ",
        )
        for paths in ([], ["mqtt"], ["/a?b"], ["/a#"], ["/ä"], [""])
    ),
    (
        "[[listener]]\nwebsocket_without_subprotocol = true",
        "listener[0].websocket_without_subprotocol",
        True,
        "only together with websocket",
    ),
    *(
        (
            f"[[listener]]\nproxy_protocol = true\nproxy_protocol_from = {value}",
            "listener[0].proxy_protocol_from",
            value,
            "1 to 100 addresses or networks such as",
        )
        for value in ([], ["barn.lan"], ["10.0.0.1/8"], [""])
    ),
    (
        "[[listener]]\nproxy_protocol = true",
        "listener[0].proxy_protocol",
        True,
        "only together with proxy_protocol_from",
    ),
    *(
        (
            f"[[listener]]\nmount_point = {value!r}",
            "listener[0].mount_point",
            value,
            "1 to 200 bytes without + and #, not beginning with $; % only as %u",
        )
        for value in ("", "+/", "a/#", "$SYS/", "%x/", "a%", "ä" * 101, "x" * 201)
    ),
    ('[[listener]]\nmount_point = "a\\u0000"', "listener[0].mount_point", "a\0", "1 to 200 bytes"),
    (
        "[[listener]]\nmount_point = '%u/'",
        "listener[0].mount_point",
        "%u/",
        "%u only together with password_file or tls_identity",
    ),
    (
        "[[retained_expiry]]\ntopic = 'a/#'\nmaximum = 0",
        "retained_expiry[0].maximum",
        0,
        "a whole number from 1",
    ),
    ("[uplink]\nmqtt = '5'", "uplink.mqtt", "5", "only with url"),
    ("[uplink]\nurl = []", "uplink.url", [], "1 to 8 addresses, each as"),
    (f"[uplink]\nurl = {['mqtt://a'] * 2}", "uplink.url", ["mqtt://a"] * 2, "no two are the same"),
    ("[uplink]\nurl = ['mqtt://a', 1]", "uplink.url", ["mqtt://a", 1], "mqtt://host:port"),
    (f"[uplink]\n{AT}\nalpn = 'mqtt'", "uplink.alpn", ["mqtt"], "only with mqtts:// or wss://"),
    ("[uplink]\nalpn = 'ü'", "uplink.alpn", "ü", "1 to 8 texts of 1 to 255 ASCII characters"),
    ("[uplink]\nalpn = []", "uplink.alpn", [], "1 to 8 texts of 1 to 255 ASCII characters"),
    *(
        (f"[uplink]\n{AT}\nproxy = '{url}'", "uplink.proxy", url, said)
        for url, said in (
            ("socks4://a:1080", "http://host:port or socks5://host:port"),
            ("http://a", "http://host:port or socks5://host:port"),
            ("http://a:99999", "the port is a number from 1 to 65535"),
            ("http://a:1/x", "nothing behind the port"),
        )
    ),
    (
        f"[uplink]\n{AT}\nproxy = 'http://me:secret@a:1'",
        "uplink.proxy",
        "http://***@a:1",
        "user name and password stand in proxy_credentials_file",
    ),
    (
        f"[uplink]\n{AT}\nproxy_credentials_file = 'x'",
        "uplink.proxy_credentials_file",
        "x",
        "only with proxy",
    ),
    (f"[uplink]\n{AT}\nkeep_alive = 1", "uplink.keep_alive", 1, "from 5 to 65535"),
    (f"[uplink]\n{AT}\nreconnect = 5", "uplink.reconnect", 5, "a table: [uplink.reconnect]"),
    (
        f"[uplink]\n{AT}\nreconnect = {{ min = '20s' }}",
        "uplink.reconnect.min",
        20.0,
        "at most max, which is 10 s",
    ),
    (
        f"[uplink]\n{AT}\nnotifications = {{ topic = 'x' }}",
        "uplink.notifications",
        "x",
        "only with reports = false: a connection has one will",
    ),
    (
        f"[uplink]\n{AT}\nreports = false\nnotifications = {{ topic = 'x/{{2}}' }}",
        "uplink.notifications.topic",
        "x/{2}",
        "a topic with no placeholder but {gateway}",
    ),
    (
        f"[uplink]\n{AT}\nmaximum_packet_size_out = 10",
        "uplink.maximum_packet_size_out",
        10,
        "a whole number from 128",
    ),
    ("[uplink]\nmqtt = 5", "uplink.mqtt", 5, 'one of "auto", "5", "3.1.1"'),
    (
        "[uplink]\nurl = 'mqtt://a'\nmqtt = '3.1.1'",
        "uplink.mqtt",
        "3.1.1",
        "only with batch or plain",
    ),
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
        '"batch(<ms>)" with 1 to 120000 ms',
    ),
    ("[[channel]]\nname = 'a b'\nfilter = 'a'", "channel[0].name", "a b", "letters, digits"),
    (
        "[[channel]]\nname = 'a'\nfilter = 'a'\nminimum_message_size = 9\nmaximum_message_size = 8",
        "channel[0].minimum_message_size",
        9,
        "at most 8",
    ),
    (
        "[[channel]]\nname = 'a'\nfilter = 'a'\nmax_attempts = 0\ndead_letter_topic = 'd'",
        "channel[0].dead_letter_topic",
        "d",
        "none while max_attempts is 0",
    ),
    (
        "[[channel]]\nname = 'a'\nfilter = 'a'\ndead_letter_expired = true",
        "channel[0].dead_letter_expired",
        True,
        "only together with dead_letter_topic",
    ),
    (
        "[[channel]]\nname = 'a'\nfilter = 'a'\nlast_value = 'topic'\npriority = 'b'",
        "channel[0].last_value",
        "topic",
        "only without priority",
    ),
    (
        "[[channel]]\nname = 'a'\nfilter = 'a'\nmax_attempts = 1\ndead_letter_topic = 'd/#'",
        "channel[0].dead_letter_topic",
        "d/#",
        "without wildcards",
    ),
    ("[[delivery.rule]]\nclass = 'device'", "delivery.rule[0].client", None, "client or user must"),
    (
        "[[delivery.rule]]\nclass = 'device'\nuser = 'a'\nclient = 'b'",
        "delivery.rule[0].client",
        "b",
        "either client or user, not both",
    ),
    ("[delivery.device]\nidle_flush = -1", "delivery.device.idle_flush", -1, "0 to 10000"),
    ("[[durability]]\nclass = 'memory'", "durability[0].topic", None, "or client must be given"),
    (
        "[[durability]]\ntopic = 'a'\nclient = 'b'\nclass = 'memory'",
        "durability[0].topic",
        "a",
        "either topic or client, not both",
    ),
    ("[uplink]\nurI = 'a'", "uplink.urI", "a", "ca_file, client_id, commit_within, directory"),
    (
        "[[uplink.rule]]\ntopik = 'a'",
        "uplink.rule[0].topik",
        "a",
        "commit_within, lane, qos, retain, stream, target, topic, uplink, where",
    ),
    (
        "[[serial]]\nport = 'a'\nbauds = 9600",
        "serial[0].bauds",
        9600,
        "unknown key; there are baud, columns",
    ),
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
    ("[storage]\nwrite_budget = 0", "storage.write_budget", 0, 'such as "200MB/day"'),
    ("[storage]\nendurance = '20'", "storage.endurance", "20", 'such as 1 or "256MiB"'),
    ("[history]\nkeep = -5", "history.keep", -5, 'a text such as "90s", "30m", "2h" or "7d"'),
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


@table(("text", "key", "value", "allowed"), MISTAKES)
def test_a_mistake_names_file_key_value_and_what_is_allowed(
    read: Load, tmp_path: Path, text: str, key: str, value: object, allowed: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(text)
    error = raised.value
    assert (error.file, error.key, error.value) == (str(tmp_path / "gateway.toml"), key, value)
    assert allowed in error.allowed
    shown = repr(value).lower() if isinstance(value, bool) else repr(value)
    found = key if value is None else f"{key} = {shown} is not allowed"
    assert str(error) == f"{error.file}: {found}: {error.allowed}"
    assert "\n" not in str(error)


def test_all_mistakes_are_told_at_once_each_in_a_line(read: Load, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    with pytest.raises(ConfigurationError) as raised:
        read(
            """
            [gatway]
            [broker]
            maximum_inflght = 5
            connect_timeout = 0
            queue_when_full = "drop_oldest"
            [uplink]
            url = "mqtt://anna:secret@fleet"
            [[uplink.rule]]
            topik = "a"
            [[uplink.rule]]
            lane = "Backlog"
            [[uplink.stream]]
            name = "main"
            mode = "expire"
            """
        )
    lines = str(raised.value).splitlines()
    beginnings = [
        "gatway = {} is not allowed: unknown key; there are access, broker, ",
        "broker.maximum_inflght = 5 is not allowed: unknown key; there are ",
        "broker.connect_timeout = 0 is not allowed: a whole number from 1 to 3600",
        "broker.queue_when_full = 'drop_oldest' is not allowed: one of",
        "uplink.url = 'mqtt://***@fleet' is not allowed: mqtt://host:port",
        "uplink.rule[0].topik = 'a' is not allowed: unknown key; there are commit_within, lane",
        "uplink.rule[1].topic: must be given",
        "uplink.rule[1].lane = 'Backlog' is not allowed: one of",
        "uplink.stream[0].expire_after = 0 is not allowed: a time such as",
    ]
    for line, beginning in zip(lines, beginnings, strict=True):
        assert line.startswith(f"{file}: {beginning}")
    assert lines[0].endswith("; did you mean gateway?")
    assert lines[1].endswith("; did you mean maximum_inflight?")
    assert lines[3].endswith('; did you mean "drop-oldest"?')
    assert lines[7].endswith('; did you mean "backlog"?')
