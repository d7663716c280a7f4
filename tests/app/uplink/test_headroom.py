"""The arithmetic of an outage, and promises that are refused with it."""

from pathlib import Path

import pytest

from gateway.app.checks.check import check_configuration
from gateway.app.uplink.headroom import (
    FOR_EVER,
    Capacity,
    Load,
    check_promise,
    drains,
    spell_seconds,
    survives,
)
from gateway.cli.main import main
from gateway.config.errors import ConfigurationError
from gateway.config.load import load
from tests.support.table import table

DAY = 86_400
MB = 1_000_000

PROMISE = '[outbox]\nsurvive = "7d"\nexpected_rate = 2\nexpected_bytes = 200\n'


@table(
    ("load_", "capacity", "seconds"),
    [
        (Load(10, 1_000), Capacity(864 * MB), DAY),
        (Load(10, 1_000), Capacity(864 * MB, disk=432 * MB), DAY / 2),
        (Load(10, 1_000), Capacity(864 * MB, disk=4_320 * MB), DAY),
        (Load(10, 1_000), Capacity(864 * MB, messages=100), 10),
        (Load(10, 1_000), Capacity(0), 0),
        (Load(10, 1_000), Capacity(1, messages=0), 0),
        (Load(0, 1_000), Capacity(0), FOR_EVER),
        (Load(1e-9, 1), Capacity(10**15), FOR_EVER),
    ],
)
def test_survives(load_: Load, capacity: Capacity, seconds: float) -> None:
    assert survives(load_, capacity) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("waiting", "up", "arriving", "seconds"),
    [
        (1_000, 110, 10, 10),
        (1_000, 10, 10, FOR_EVER),
        (1_000, 5, 10, FOR_EVER),
        (0, 5, 10, 0),
        (10**12, 1, 0.999, FOR_EVER),
    ],
)
def test_drains(waiting: float, up: float, arriving: float, seconds: float) -> None:
    assert drains(waiting, up, arriving) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (40, "40 s"),
        (720, "12.0 min"),
        (11_160, "3.1 h"),
        (9.4 * DAY, "9.4 days"),
        (FOR_EVER, "more than 10 years"),
    ],
)
def test_spelled(seconds: float, text: str) -> None:
    assert spell_seconds(seconds) == text


def written(folder: Path, text: str, uplink: str = "[uplink]\n") -> Path:
    path = folder / "gateway.toml"
    path.write_text(text + uplink)
    return path


def test_a_promise_that_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, PROMISE)
    assert main(["check", str(path)]) == 0
    output = capsys.readouterr().out
    assert "survives 16." in output
    assert "2 messages a second of 200 bytes" in output
    assert "1,209,600 messages" in output
    assert output.endswith(": ok\n")


BROKEN = [
    ('maximum_bytes = "64MiB"\n', "", "maximum_bytes leaves 50.3 MB for rows: that is 18."),
    ("maximum_messages = 86400\n", "", "maximum_messages is 86400: that is 12.0 h"),
    ('maximum_age = "6d"\n', "", "maximum_age of the outbox drops messages after 6.0 days"),
    (
        "",
        '[[uplink.stream]]\nname = "main"\nmaximum_age = "1h"\n',
        "maximum_age of the stream main drops messages after 60.0 min",
    ),
    (
        "",
        'url = "mqtt://fleet"\nbudget = "30MB/day"\n',
        "34.6 MB come in a day, and uplink.budget lets 30.0 MB up",
    ),
]


@pytest.mark.parametrize(("bound", "uplink", "text"), BROKEN)
def test_a_promise_that_cannot_be_kept_is_refused(
    tmp_path: Path, bound: str, uplink: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, PROMISE + bound, "[uplink]\n" + uplink)
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(load(path))
    assert raised.value.key == "outbox.survive"
    assert text in raised.value.allowed
    assert main(["check", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert text in error


def test_the_disk_is_looked_at_when_it_is_named(tmp_path: Path) -> None:
    configuration = load(written(tmp_path, PROMISE))
    assert check_promise(configuration, 10_000 * MB) is not None
    with pytest.raises(ConfigurationError, match=r"the disk has 83\.2 MB free: that is 31\.\d h"):
        check_promise(configuration, 100 * MB)


@pytest.mark.parametrize("key", ["expected_rate", "expected_bytes"])
def test_a_promise_names_the_load(tmp_path: Path, key: str) -> None:
    lines = [line for line in PROMISE.splitlines() if not line.startswith(key)]
    with pytest.raises(ConfigurationError) as raised:
        load(written(tmp_path, "\n".join(lines) + "\n"))
    assert (raised.value.key, raised.value.allowed) == (
        f"outbox.{key}",
        "must be given with survive",
    )


def test_without_an_uplink_nothing_waits(tmp_path: Path) -> None:
    assert check_promise(load(written(tmp_path, PROMISE + "maximum_messages = 1\n", ""))) is None
