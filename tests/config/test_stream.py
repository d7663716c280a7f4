"""Streams of the configuration: what cannot work is named."""

from pathlib import Path

import pytest

from gateway.config.errors import ConfigurationError
from gateway.config.load import load

MISTAKES = [
    ("[[uplink.stream]]\nname='main'\n[[uplink.stream]]\nname='main'", "[1].name", "main"),
    ("[[uplink.stream]]\nname='alarm'", "[0].name", "alarm"),
    ("[[uplink.stream]]\nname='main'\nmode='expire'", "[0].expire_after", 0),
    ("[[uplink.stream]]\nname='main'\nexpire_after='1h'", "[0].expire_after", 3600),
    ("[[uplink.stream]]\nname='main'\npriority=11", "[0].priority", 11),
    ("[[uplink.stream]]\nname='main'\nmode='newest'", "[0].mode", "newest"),
    (
        "[[uplink.stream]]\nname='main'\nwhen_full='drop-lowest-priority'",
        "[0].when_full",
        "drop-lowest-priority",
    ),
    ("[[uplink.stream]]\nname='main'\nmaximum_bytes=1000", "[0].maximum_bytes", 1000),
    ("[[uplink.stream]]\nname='main'\nmaximum_bytes='1 GB'", "[0].maximum_bytes", "1 GB"),
    ("[[uplink.stream]]\npriority=1", "[0].name", None),
]


@pytest.mark.parametrize(("text", "key", "value"), MISTAKES)
def test_a_mistake_is_named(tmp_path: Path, text: str, key: str, value: object) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(f"[uplink]\n{text}")
    with pytest.raises(ConfigurationError) as raised:
        load(path)
    assert (raised.value.key, raised.value.value) == (f"uplink.stream{key}", value)


def test_a_size_is_a_text_or_a_number(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    for text, size in (('"1MiB"', 1024**2), ("1048576", 1024**2), ('"1.5GB"', 1_500_000_000)):
        path.write_text(f"[outbox]\nmaximum_bytes = {text}")
        assert load(path).outbox.maximum_bytes == size
