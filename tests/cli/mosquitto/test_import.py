"""`tidegate import mosquitto.conf` of configurations in the manner of public ones."""

import tomllib
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.cli.mosquitto.command import text_of
from gateway.cli.mosquitto.conversion import NEEDLESS, WITHOUT, Conversion
from gateway.cli.mosquitto.lines import lines_of
from gateway.errors import TidegateError
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.table import table

FILES = Path(__file__).with_name("files")
NAMES = sorted(each.name for each in FILES.glob("*.conf"))

USERS = "anna:$7$101$c2FsdHNhbHRzYWx0$" + "A" * 86 + "==\n"
ACL = "user anna\ntopic readwrite #\npattern readwrite devices/%c/#\n"
INCLUDED = "password_file {folder}/users\nallow_anonymous false\nlistener {port} 127.0.0.1\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def _file(folder: Path, name: str, authority: Authority) -> Path:
    """Return a file of the folder with its places filled, and write what it names."""
    pair = authority.issue("localhost")
    names = ("port", "port2", "port3", "fleet")
    values = {each: str(free_port()) for each in names} | {
        "folder": str(folder),
        "ca": authority.ca_file,
        "certificate": pair.certificate,
        "key": pair.key,
    }
    (folder / "users").write_text(USERS)
    (folder / "acl").write_text(ACL)
    (folder / "share").mkdir()
    (folder / "conf.d").mkdir()
    (folder / "conf.d" / "default.conf").write_text(_filled(INCLUDED, values))
    (folder / "conf.d" / "README").write_text("not read\n")
    file = folder / "mosquitto.conf"
    file.write_text(_filled((FILES / name).read_text(), values))
    return file


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@pytest.mark.uncovered
@pytest.mark.parametrize("name", NAMES)
def test_the_result_passes_the_check_and_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], authority: Authority, name: str
) -> None:
    file, output = _file(tmp_path, name, authority), tmp_path / "gateway.toml"
    assert main(["import", str(file), "-o", str(output)]) == 0
    printed = capsys.readouterr().err
    assert main(["check", str(output)]) == 0, capsys.readouterr()
    text = output.read_text()
    assert "s3cr3t" not in text
    assert "SharedAccess" not in text
    for line in lines_of(file):
        why = NEEDLESS.get(line.option) or WITHOUT.get(line.option)
        if why is not None:
            assert f"{line.place}: {line.option}" in printed, line
            assert f"# {line.place}: {line.option}" in text, line
    process = GatewayProcess(tmp_path, text)
    process.start()
    assert process.stop() == 0


def test_a_file_with_an_include_dir_has_what_stands_there(
    tmp_path: Path, authority: Authority
) -> None:
    file = _file(tmp_path, "debian.conf", authority)
    made = tomllib.loads(text_of(Conversion(file), "mosquitto.conf"))
    [listener] = made["listener"]
    assert listener["password_file"] == f"{tmp_path}/users"
    assert (listener["host"], listener["allow_anonymous"]) == ("127.0.0.1", False)


def test_bridges_become_uplinks(tmp_path: Path, authority: Authority) -> None:
    file = _file(tmp_path, "two_sites.conf", authority)
    conversion = Conversion(file)
    office, cloud = tomllib.loads(text_of(conversion, "mosquitto.conf"))["uplink"]
    rules = [(each["topic"], each["target"], each.get("qos", 1)) for each in office["rule"]]
    assert rules == [
        ("sensors/#", "sites/mill/{topic}", 1),
        ("lamps/+/state", "sites/mill/lamps/{2+}", 0),
        ("local/one", "remote/one", 1),
    ]
    assert office["down"] == [
        {"topic": "sites/mill/commands/#", "local": "commands/{4+}", "qos": 1},
        {"topic": "sites/mill/lamps/+/state", "local": "lamps/{4+}", "qos": 0},
    ]
    assert cloud["rule"][0]["stream"] != office["rule"][0]["stream"]
    assert cloud["maximum_packet_size"] == 65_536
    assert [each.rpartition(":")[0] for each in office["url"]] == ["mqtt://127.0.0.1"] * 2
    assert office["keep_alive"] == 30
    lines = {
        (line.option, line.value.split()[0])
        for line, _, differs in conversion.unconverted
        if differs
    }
    assert ("topic", "odd/#") in lines


def test_the_longest_keep_alive_is_for_all_listeners(tmp_path: Path, authority: Authority) -> None:
    conversion = Conversion(_file(tmp_path, "several_listeners.conf", authority))
    assert [table["maximum_keep_alive"] for _, table in conversion.listeners] == ["600s"] * 4


def test_mount_points_and_proxies_are_those_of_their_listener(
    tmp_path: Path, authority: Authority
) -> None:
    conversion = Conversion(_file(tmp_path, "several_listeners.conf", authority))
    tables = [table for _, table in conversion.listeners]
    assert [each.get("mount_point") for each in tables] == [None, "plants/", None, None]
    assert [each.get("proxy_protocol") for each in tables] == [None, None, True, None]
    assert tables[2]["proxy_protocol_from"] == ["127.0.0.1", "::1"]
    lines = {line.option: (why, differs) for line, why, differs in conversion.unconverted}
    assert "name the addresses of your proxies" in lines["enable_proxy_protocol"][0]
    assert lines["retain_expiry_interval"] == (NEEDLESS["retain_expiry_interval"], False)


def test_passwords_go_into_files_that_others_cannot_read(
    tmp_path: Path, authority: Authority
) -> None:
    file, output = _file(tmp_path, "venus.conf", authority), tmp_path / "gateway.toml"
    assert main(["import", str(file), "-o", str(output)]) == 0
    secret = tmp_path / "cloud.password"
    assert secret.read_text() == "s3cr3t"
    assert secret.stat().st_mode & 0o777 == 0o600
    made = tomllib.loads(output.read_text())
    assert made["uplink"]["password_file"] == str(secret)
    assert made["storage"]["durability"] == "memory"
    assert made["log"]["broker"] == "warning"
    assert made["uplink"]["reconnect"] == {"min": 10, "max": 120}
    topic = "P/c0619ab12345/out/mqtt-bridge/state"
    assert made["uplink"]["notifications"] == {"topic": topic}


def test_notifications_on_a_topic_of_their_own_are_no_difference(tmp_path: Path) -> None:
    file = tmp_path / "mosquitto.conf"
    lines = "connection x\naddress a\nnotifications true\n"
    file.write_text(f"{lines}notification_topic x/state\ntopic # out 1\n")
    conversion = Conversion(file)
    assert conversion.unconverted == []
    assert tomllib.loads(text_of(conversion, ""))["uplink"]["notifications"] == {"topic": "x/state"}


def test_without_o_it_is_printed_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], authority: Authority
) -> None:
    file = _file(tmp_path, "azure_bridge.conf", authority)
    assert main(["import", str(file)]) == 0
    out, printed = capsys.readouterr()
    made = tomllib.loads(out)
    assert "azureiot.password: write the password there" in printed
    assert "retain" not in made["uplink"]["rule"][0]
    assert not (tmp_path / "azureiot.password").exists()


SAMPLES = {
    "address": "127.0.0.1",
    "addresses": "127.0.0.1",
    "allow_anonymous": "true",
    "bind_address": "127.0.0.1",
    "bridge_outgoing_retain": "false",
    "bridge_protocol_version": "mqttv50",
    "cleansession": "true",
    "connection": "other",
    "connection_messages": "false",
    "enable_proxy_protocol": "2",
    "listener": "1884 127.0.0.1",
    "log_type": "debug",
    "notification_topic": "links/x",
    "notifications": "true",
    "persistence": "false",
    "round_robin": "true",
    "persistent_client_expiration": "1d",
    "protocol": "websockets",
    "require_certificate": "true",
    "socket_domain": "ipv6",
    "topic": "x/# out",
    "use_identity_as_username": "true",
}
WITH_OTHERS = ("require_certificate", "use_identity_as_username", "bridge_tls_use_os_certs")
"""Say nothing without a certificate, or say what is so."""


def _options() -> list[str]:
    """Return the options of Mosquitto 2.0 and 2.1, as its manual has them."""
    return (FILES / "options").read_text().split()


@pytest.mark.parametrize("option", _options())
def test_no_line_is_dropped_silently(tmp_path: Path, option: str) -> None:
    base = "listener 1883\nconnection one\naddress 127.0.0.1\ntopic # out\n"
    (tmp_path / "conf").mkdir()
    value = f"{tmp_path}/conf" if option == "include_dir" else SAMPLES.get(option, "60")
    file = tmp_path / "mosquitto.conf"
    file.write_text(base)
    before = text_of(Conversion(file), "")
    file.write_text(f"{base}{option} {value}\n")
    conversion = Conversion(file)
    named = any(line.option == option for line, _, _ in conversion.unconverted)
    assert named or text_of(conversion, "") != before or option in WITH_OTHERS
    assert not any("not known" in why for _, why, _ in conversion.unconverted)


@table(
    ("text", "said"),
    [
        ("topic # sideways\n", "topic PATTERN [out|in|both"),
        ("topic # out 3\n", "topic PATTERN [out|in|both"),
        ("listener many\n", "listener PORT [ADDRESS]"),
        ("listener 0 relative\n", "a Unix socket has a path"),
        ("max_packet_size much\n", "a whole number"),
        ("persistent_client_expiration 3\n", "a number and one of h, d, w, m and y"),
        ("persistence perhaps\n", "true or false"),
        ("sys_interval 0\n", "figures under $SYS are always there"),
        ("protocol amqp\n", "mqtt or websockets"),
        ("connection x\naddress a\ntopic $SYS/# in\n", "nothing is written below $"),
        ("connection x\naddress a\ntopic a{b}/# out 0 x/ y/\n", "braces in topics"),
        ("connection x\naddress a\nstart_type lazy\n", "links are always up"),
        ("connection x\naddress a\nbridge_protocol_version mqttv4\n", "versions are"),
        ("connection x\naddress a\nbridge_max_packet_size 10\n", "1,024 bytes at least"),
        ("connection x\naddress a\nrestart_timeout soon\n", "restart_timeout BASE [CAP]"),
        ("connection x\naddress a\nnotification_topic $SYS/x\n", "nothing is written below $"),
        ("connection x\naddress a\nnotifications true\n", "nothing is written below $"),
        ("connection x\n", "a bridge without an address"),
        ("listener 1883\nmount_point a/+/\n", "without + and #"),
        ("listener 1883\nmount_point dev/%c/\n", "in Mosquitto 2.0 these very characters"),
        ("listener 1883\nmount_point $SYS/\n", "not beginning with $"),
        ("listener 1883\nenable_proxy_protocol yes\n", "1 or 2"),
        ("listener 0 /tmp/x\nenable_proxy_protocol 2\n", "a Unix socket has no proxy"),
        ("no_such_option 1\n", "an unknown option"),
    ],
)
def test_bad_lines_are_told_with_their_numbers(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mosquitto.conf"
    if text.startswith("topic"):
        text = f"connection x\naddress a\n{text}"
    file.write_text(text)
    printed = text_of(Conversion(file), "")
    number = 1 if text == "connection x\n" else text.count("\n")
    assert f"# {file}:{number}: " in printed
    assert said in printed


def test_files_that_cannot_be_read_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mosquitto.conf"
    assert main(["import", str(file)]) == 2
    file.write_text("include_dir none\n")
    assert main(["import", str(file)]) == 2
    file.write_bytes(b"# \xff\n")
    assert main(["import", str(file)]) == 2
    printed = capsys.readouterr().err
    for said in ("No such file", f"{file}:1: include_dir", "not UTF-8"):
        assert said in printed
    file.write_text("listener 1883 127.0.0.1\n")
    output = tmp_path / "gateway.toml"
    output.write_text("")
    assert main(["import", str(file), "-o", str(output)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["import", str(file), str(file), "-o", str(output)]) == 2


def test_more_bridges_than_uplinks_are_told(tmp_path: Path) -> None:
    file = tmp_path / "mosquitto.conf"
    file.write_text(
        "".join(f"connection the same one {n}\naddress a\ntopic # out\n" for n in range(9))
    )
    conversion = Conversion(file)
    names = {table["name"] for _, table in conversion.uplinks}
    assert len(names) == 8
    assert any("a gateway has 8 uplinks" in why for _, why, _ in conversion.unconverted)


def test_a_file_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mosquitto.conf"
    file.write_text("#" * 4_200_000)
    with pytest.raises(TidegateError, match="at most 4,194,304"):
        list(lines_of(file))
