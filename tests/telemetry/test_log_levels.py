"""Levels by part of the gateway."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.settings.log import PARTS as PARTS_OF_LOG
from gateway.settings.log import Level, LogSettings
from gateway.telemetry.logs import PACKAGES, levels, set_level, set_levels

PARTS = ("uplink.uplink", "broker.broker", "session.session", "server.turn", "app.start")

GATEWAY = Path(__file__).parents[2] / "gateway"


@pytest.fixture(autouse=True)
def levels_as_they_were() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level
    yield
    set_levels(LogSettings())
    root.setLevel(before)


def test_a_part_has_a_level_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[log]\nlevel = 'warning'\nuplink = 'debug'\nbroker = 'error'\n")
    set_levels(load(file).log)
    found = {
        name: logging.getLogger(f"gateway.{name}").getEffectiveLevel()
        for name in (
            "uplink.uplink",
            "broker.broker",
            "session.session",
            "server.turn",
            "app.start",
        )
    }
    assert found == {
        "uplink.uplink": logging.DEBUG,
        "broker.broker": logging.ERROR,
        "session.session": logging.ERROR,
        "server.turn": logging.WARNING,
        "app.start": logging.WARNING,
    }
    set_levels(LogSettings())
    assert logging.getLogger("gateway.uplink.uplink").getEffectiveLevel() == logging.INFO


def test_one_part_may_change_alone() -> None:
    set_levels(LogSettings(level=Level.WARNING, uplink=Level.ERROR))
    set_level("broker", Level.DEBUG)
    assert levels() == {
        **dict.fromkeys(PARTS_OF_LOG),
        "all": "warning",
        "uplink": "error",
        "broker": "debug",
    }
    assert logging.getLogger("gateway.session.session").getEffectiveLevel() == logging.DEBUG
    set_level("broker", None)
    assert levels()["broker"] is None
    assert set(PACKAGES) == {*PARTS_OF_LOG} - {"all"}


def test_every_package_that_logs_belongs_to_a_part() -> None:
    known = {name for names in PACKAGES.values() for name in names}
    logging_ones = {
        file.relative_to(GATEWAY).parts[0]
        for file in GATEWAY.rglob("*.py")
        if "logging.getLogger(__name__)" in file.read_text(encoding="utf-8")
    }
    assert logging_ones <= known
