from pathlib import Path

import pytest

from gateway.app.checks import check as check_module
from gateway.app.checks.check import check_configuration
from gateway.cli.main import main
from gateway.config.errors import ConfigurationError
from gateway.config.load import load, read
from gateway.extras import how_to_install


def check(folder: Path, text: str) -> None:
    """Check a configuration of this text."""
    path = folder / "gateway.toml"
    path.write_text(text)
    check_configuration(load(path))


MISTAKES = [
    ("a/#/b", None, "uplink.rule[1].topic", "a/#/b", "has a # that is not its whole last level"),
    ("a/b+", None, "uplink.rule[1].topic", "a/b+", "has a + that is not a whole level"),
    (
        "$share/g/a",
        None,
        "uplink.rule[1].topic",
        "$share/g/a",
        "messages are not shared, subscriptions are",
    ),
    ("a", "payload.value >", "uplink.rule[1].where", "payload.value >", "position 15: "),
    ("a", "((", "uplink.rule[1].where", "((", "position 2: "),
]


@pytest.mark.parametrize(("topic", "where", "key", "value", "allowed"), MISTAKES)
def test_a_rule_that_cannot_work_is_named(
    tmp_path: Path, topic: str, where: str | None, key: str, value: str, allowed: str
) -> None:
    text = f"[[uplink.rule]]\ntopic = 'fine/#'\n[[uplink.rule]]\ntopic = '{topic}'\n"
    with pytest.raises(ConfigurationError) as raised:
        check(tmp_path, text + (f"where = '{where}'" if where else ""))
    assert raised.value.file == str(tmp_path / "gateway.toml")
    assert (raised.value.key, raised.value.value) == (key, value)
    assert allowed in raised.value.allowed


def test_rules_that_can_work(tmp_path: Path) -> None:
    rule = "[[uplink.rule]]\ntopic = '{}'\n"
    check(tmp_path, rule.format("#") + "where = 'a = 1'\n" + rule.format("a"))
    check(tmp_path, rule.format("a") + "where = 'DEADBAND(payload.t, 1) OR EVERY(60)'")
    check(tmp_path, "")


FILTER_MISTAKES = [
    ("a/#/b", "qos = 1", "filter", "a/#/b", "has a # that is not its whole last level"),
    ("$share/g/a", "qos = ", "where", "qos = ", "position 6: "),
    ("a", "CHANGED(a)", "where", "CHANGED(a)", "position 0: CHANGED needs the memory of an uplink"),
]


@pytest.mark.parametrize(("topic_filter", "where", "key", "value", "allowed"), FILTER_MISTAKES)
def test_a_subscription_filter_that_cannot_work_is_named(
    tmp_path: Path, topic_filter: str, where: str, key: str, value: str, allowed: str
) -> None:
    table = "[[subscription_filter]]\nclient = '{}'\nfilter = '{}'\nwhere = '{}'\n"
    with pytest.raises(ConfigurationError) as raised:
        check(tmp_path, table.format("*", "a", "TRUE") + table.format("*", topic_filter, where))
    assert (raised.value.key, raised.value.value) == (f"subscription_filter[1].{key}", value)
    assert allowed in raised.value.allowed


@pytest.mark.uncovered
def test_no_more_subscription_filters_than_are_looked_at(tmp_path: Path) -> None:
    table = "[[subscription_filter]]\nclient = '*'\nfilter = 'a'\nwhere = 'TRUE'\n"
    check(tmp_path, table * 1_000)
    with pytest.raises(ConfigurationError, match="= 1001 is not allowed: 0 to 1000 tables"):
        check(tmp_path, table * 1_001)


DURABILITY_MISTAKES = [
    ("a/#/b", "has a # that is not its whole last level"),
    ("$share/g/a", "messages are not shared"),
]


@pytest.mark.parametrize(("topic", "allowed"), DURABILITY_MISTAKES)
def test_a_durability_that_cannot_work_is_named(tmp_path: Path, topic: str, allowed: str) -> None:
    text = f"[[durability]]\ntopic = '{topic}'\nclass = 'memory'\n"
    with pytest.raises(ConfigurationError) as raised:
        check(tmp_path, "[[durability]]\nclient = '*'\nclass = 'commit'\n" + text)
    assert (raised.value.key, raised.value.value) == ("durability[1].topic", topic)
    assert allowed in raised.value.allowed


def test_no_more_durability_entries_than_are_looked_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        check(tmp_path, "[[durability]]\nclient = 'a'\nclass = 'memory'\n" * 101)
    assert (raised.value.key, raised.value.value) == ("durability", 101)


def test_a_window_that_is_none_is_named(tmp_path: Path) -> None:
    schedule = "['0 2 * * * for 1h', '0 25 * * * for 1h']"
    with pytest.raises(ConfigurationError, match=r"schedule\[1\].*an? hour from 0 to 23"):
        check(tmp_path, f"[uplink]\nurl = 'mqtt://fleet'\nschedule = {schedule}\n")


def test_everything_that_cannot_work_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(
        f"""
        x = 1
        [[listener]]
        port = 0
        password_file = "{tmp_path}/users"
        [[listener]]
        tls_certificate = "{tmp_path}"
        [uplink]
        url = "mqtt://fleet"
        ca_file = "{tmp_path}/ca.pem"
        schedule = ["0 25 * * * for 1h"]
        [[uplink.rule]]
        topic = "a/#/b"
        where = "payload.value >"
        [[uplink.rule]]
        where = "(("
        """
    )
    configuration, mistakes = read(path)
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(configuration, mistakes)
    lines = [line.split(": ")[1].split(" = ")[0] for line in str(raised.value).splitlines()]
    assert lines == [
        "x",
        "listener[0].port",
        "uplink.rule[1].topic",
        "listener[0].password_file",
        "listener[1].tls_certificate",
        "uplink.ca_file",
        "uplink.schedule[0]",
        "uplink.rule[0].topic",
        "uplink.rule[0].where",
        "uplink.rule[1].where",
    ]
    assert "users' is not allowed: No such file" in str(raised.value)
    assert "Is a directory" in str(raised.value)


def test_unlikely_filters_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(
        """
        [[uplink.rule]]
        topic = "a/#"
        where = 'payload.state = "ON"'
        [[uplink.rule]]
        topic = "b/#"
        where = "1 = 2"
        [[subscription_filter]]
        client = "*"
        filter = "a"
        where = "payload.t > 10 AND payload.t < 5"
        [[channel]]
        name = "values"  # which need not be true
        filter = "c/#"
        priority = "CASE WHEN payload.urgent IS TRUE THEN 'high' END"
        [[channel]]
        name = "mistake"
        filter = "d/#"
        priority = 'CASE WHEN payload.state = "ON" THEN $user.p END'
        """
    )
    assert main(["check", str(path)]) == 0
    output = capsys.readouterr().out.splitlines()
    found = [line.partition("warning: ")[2].partition(":")[0] for line in output[:-1]]
    assert sorted(found) == [
        "channel[1].priority",
        "subscription_filter[0].where",
        "uplink.rule[0].where",
        "uplink.rule[1].where",
    ]
    assert output[-1] == f"{path}: ok"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[[channel]]\nname = 'a'\nmax_attempts = 1\ndead_letter_topic = 'd'\n", "filter"),
        ("[[channel]]\nfilter = 'a'\n[[channel]]\nfilter = 'a'\n", "name"),
        ("[[uplink.rule]]\nwhere = 'TRUE'\n[[uplink.rule]]\nwhere = 'TRUE'\n", "topic"),
        ("[[uplink.down]]\n", "topic"),
        ("[[uplink]]\n[[uplink]]\n", "name"),
        ("[[access.role]]\nread = ['a']\n", "name"),
        ("[[delivery]]\n", "delivery"),
        ("[[serial]]\n", "port"),
        ("[[modbus]]\n", "modbus"),
        ("[[ble.device]]\n", "ble"),
    ],
)
def test_a_key_that_is_missing_is_told_and_nothing_else_trips_over_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, key: str
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    assert main(["check", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert any(key in line for line in lines)
    assert all(line.startswith(f"tidegate: {path}: ") for line in lines)


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        ("port = 1883", "port = 1883", True),
        ("port = 1883", "port = 1884", False),
        ("host = '0.0.0.0'\nallow_anonymous = true", "host = '127.0.0.1'", True),
        ("host = '127.0.0.1'", "host = 'localhost'", True),
        ("host = '::1'", "host = 'localhost'", True),
        ("host = '::'\nallow_anonymous = true", "host = '127.0.0.1'", False),
        ("host = '127.0.0.1'", "host = '127.0.0.2'", False),
        ("host = '127.0.0.1'", "host = 'barn.local'\nallow_anonymous = true", False),
        ("path = '/run/a'", "path = '/run/a'", True),
        ("path = '/run/a'", "path = '/run/b'", False),
        ("path = '/run/a'", "", False),
    ],
)
def test_two_listeners_at_one_address(tmp_path: Path, first: str, second: str, taken: bool) -> None:
    text = f"[[listener]]\n{first}\n[[listener]]\n{second}\n"
    if not taken:
        check(tmp_path, text)
        return
    with pytest.raises(ConfigurationError, match="no other listener has") as raised:
        check(tmp_path, text)
    assert raised.value.key in ("listener[1].port", "listener[1].path")


@pytest.mark.parametrize(
    ("listener", "taken"),
    [
        ("port = 9234", True),
        ("", False),
        ("host = '::1'\nport = 9234", False),
        ("path = '/a'", False),
    ],
)
def test_the_metrics_have_a_port_of_their_own(tmp_path: Path, listener: str, taken: bool) -> None:
    text = f"[metrics]\n[[listener]]\n{listener}\n"
    if not taken:
        check(tmp_path, text)
        return
    with pytest.raises(ConfigurationError, match="one that no listener has") as raised:
        check(tmp_path, text)
    assert raised.value.key == "metrics.port"


@pytest.mark.parametrize(
    ("keys", "key", "module", "extra"),
    [
        ("url = 'mqtt://a'\nproxy = 'socks5://b:1080'", "uplink.proxy", "python_socks", "proxy"),
        ("url = 'ws://a'", "uplink.url[0]", "websockets", "websocket"),
        ("url = ['mqtt://a', 'wss://b']", "uplink.url[1]", "websockets", "websocket"),
    ],
)
def test_an_extra_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str, key: str, module: str, extra: str
) -> None:
    text = f"[gateway]\nid = 'a'\n[uplink]\n{keys}\n"
    check(tmp_path, text)
    monkeypatch.setattr(check_module, "find_spec", lambda name: None if name == module else name)
    with pytest.raises(ConfigurationError) as raised:
        check(tmp_path, text)
    assert raised.value.key == key
    assert how_to_install(extra) in raised.value.allowed


def test_two_bridges_at_one_port(tmp_path: Path) -> None:
    serial = '[[serial]]\nname = "{}"\nport = "{}"\n'
    with pytest.raises(ConfigurationError, match="no other bridge has") as raised:
        check(tmp_path, serial.format("a", "/dev/ttyX") + serial.format("b", "/dev/ttyX"))
    assert raised.value.key == "serial[1].port"
    check(tmp_path, serial.format("a", "topic://n/a") + serial.format("b", "/dev/ttyX"))
    file = tmp_path / "gateway.toml"  # a table with a mistake is left out: the others move up
    file.write_text(serial.format("a", "/dev/ttyX") * 2 + serial.format("b", "/dev/ttyX"))
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(*read(file))
    assert "no other bridge has" not in str(raised.value)
