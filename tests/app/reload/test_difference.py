"""What differs between two configurations, as people and programs are told."""

from pathlib import Path

from gateway.app.reload.difference import SHOWN, Change, differences
from gateway.config.load import load


def changes(folder: Path, old: str, new: str) -> list[tuple[str, object, object]]:
    configurations = []
    for text in (old, new):
        file = folder / "gateway.toml"
        file.write_text(text)
        configurations.append(load(file))
    return [tuple(each) for each in differences(*configurations)]  # type: ignore[misc]


def channel(name: str, more: str = "") -> str:
    return f'[[channel]]\nname = "{name}"\nfilter = "{name}/#"\n{more}'


def test_keys_are_named_with_their_values(tmp_path: Path) -> None:
    assert changes(tmp_path, "", "") == []
    assert changes(tmp_path, "", "[broker]\np2p = true\nmaximum_inflight = 9\n") == [
        ("broker.maximum_inflight", 1000, 9),
        ("broker.p2p", False, True),
    ]
    assert changes(tmp_path, "[metrics]\nport = 9000\n", "") == [("metrics", {"port": 9000}, None)]


def test_tables_are_told_apart_by_what_they_share_at_both_ends(tmp_path: Path) -> None:
    old = channel("a") + channel("b") + channel("c")
    assert changes(tmp_path, old, channel("a") + channel("c")) == [
        ("channel[1]", {"name": "b", "filter": "b/#"}, None)
    ]
    assert changes(tmp_path, channel("a") + channel("c"), old) == [
        ("channel[1]", None, {"name": "b", "filter": "b/#"})
    ]
    more = "max_attempts = 3\nchoice = 'random'\n"
    assert changes(tmp_path, old, channel("a") + channel("b", more) + channel("c")) == [
        ("channel[1].choice", "round_robin", "random"),
        ("channel[1].max_attempts", 20, 3),
    ]
    uplink = '[uplink]\ndirectory = "{}"\n[[uplink.rule]]\ntopic = "a"\n'
    found = changes(tmp_path, uplink.format("a"), uplink.format("b") + "qos = 0\n")
    assert found == [("uplink.directory", "a", "b"), ("uplink.rule[0].qos", 1, 0)]


def test_bridges_go_by_their_names(tmp_path: Path) -> None:
    line = '[[serial]]\nport = "/dev/{}"\nname = "{}"\n'
    old = line.format("a", "one") + line.format("b", "two")
    new = line.format("b", "two") + line.format("c", "one")
    assert changes(tmp_path, old, new) == [("serial(one).port", "/dev/a", "/dev/c")]
    assert changes(tmp_path, old, line.format("b", "two"))[0][0] == "serial(one)"


def test_secrets_and_long_texts_are_not_shown(tmp_path: Path) -> None:
    ble = '[[ble]]\n[[ble.device]]\naddress = "A4:C1:38:00:00:01"\nkey = "{}"\n'
    found = changes(tmp_path, ble.format("00" * 16), ble.format("11" * 16))
    assert "11" * 16 not in str(found)
    assert found[0][2] == "…"
    url = '[uplink]\nurl = "mqtt://127.0.0.1"\nprefix = "{}"\n'
    (change,) = changes(tmp_path, url.format("a"), url.format("b" * 300))
    assert change == Change("uplink.prefix", "a", "b" * SHOWN)
