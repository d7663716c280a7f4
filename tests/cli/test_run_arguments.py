from pathlib import Path
from typing import Any

import pytest

from gateway.cli.commands import options_of
from gateway.cli.run_arguments import DATA, DURABILITY, OPTIONS, simple_options

DEFAULTS: dict[str, Any] = {"config": None, "port": None, "data": DATA, "durability": DURABILITY[0]}

SIMPLE = [
    "",
    "--config gateway.toml",
    "--port 65535",
    "--config /etc/tidegate/gateway.toml --data /var/lib/tidegate",
    "--data one --durability memory --data two --port 1",
]

NOT_SIMPLE = [
    *("--help", "--port", "gateway.toml", "--data=here", "--conf gateway.toml", "--data -x"),
    *("--port 0", "--port 65536", "--port ٣", "--durability never", "--colour red"),
]


@pytest.mark.parametrize("line", SIMPLE)
def test_simple_options_are_what_argparse_makes_of_them(line: str) -> None:
    given = simple_options(line.split())
    assert given is not None
    options = options_of(["run", *line.split()])
    assert DEFAULTS | given == {name: getattr(options, name) for name in DEFAULTS}


@pytest.mark.parametrize("line", NOT_SIMPLE)
def test_all_others_are_left_to_argparse(line: str) -> None:
    assert simple_options(line.split()) is None


def test_every_option_is_known() -> None:
    assert {name.removeprefix("--") for name in OPTIONS} == set(DEFAULTS)
    assert simple_options(["--data", ""]) == {"data": Path()}


@pytest.mark.parametrize("line", ["tui", "subscribe a/#", "uplink status", "bridges status"])
def test_the_gateway_is_named_with_or_without_its_option(line: str) -> None:
    assert options_of([*line.split(), "--url", "mqtt://x"]).url == "mqtt://x"
    assert getattr(options_of(line.split()), "url", None) is None
