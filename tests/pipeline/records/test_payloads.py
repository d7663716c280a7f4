"""The readings in payloads of other programs, beside what the gateway's own bridge gives."""

import json
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.records.declarations import FleetMapping, read_declared
from pipeline.records.payloads import Payloads
from tests.support.nodes.preset_messages import MESSAGES
from tests.support.table import table


@table("preset, topic, payload, expected", MESSAGES)
def test_a_preset_gives_what_the_bridge_gives(
    preset: str, topic: str, payload: object, expected: dict[str, object]
) -> None:
    payloads = Payloads([FleetMapping(preset=preset)])
    found = {}
    for each in payloads.readings("barn", topic, json.dumps(payload).encode()):
        series = "/".join(filter(None, (each.node, each.quantity, each.instance)))
        found[series] = each.value_text if each.value is None else each.value
    assert found == {
        series: json.dumps(value) if isinstance(value, bool) else value
        for series, value in expected.items()
    }


OWN = FleetMapping(topics=("sensors/{node}", "m/#"), node="{who}", gateway="barn")


@table(
    "gateway, topic, payload, expected",
    [
        ("barn", "sensors/x", {"who": "n1", "temp": 1}, [("n1", "temperature", 1.0, None)]),
        ("shed", "sensors/x", {"who": "n1", "temp": 1}, [(None, None, None, None)]),
        ("barn", "sensors/n2/t", {"value": 3}, [("n2", "t", 3.0, None)]),
        ("barn", "m/a/b", {"temp": 1}, [(None, None, None, "the message names no node")]),
        (
            "barn",
            "m/a",
            {"who": "n", "temp": float("nan"), "hum": 5},
            [("n", "temperature", None, "value is no number"), ("n", "humidity", 5.0, None)],
        ),
        ("barn", "m/a", {"who": "n", "x" * 65: 1}, [("n", "x" * 65, 1.0, "quantity 'xxx")]),
    ],
)
def test_mappings_of_ones_own(
    gateway: str, topic: str, payload: object, expected: list[tuple[object, ...]]
) -> None:
    found = Payloads([OWN]).readings(gateway, topic, json.dumps(payload).encode())
    told = [(each.node, each.quantity, each.value, each.decode_error) for each in found]
    assert [each[:3] for each in told] == [each[:3] for each in expected]
    for (*_, error), (*_, begin) in zip(told, expected, strict=True):
        assert error is begin or str(error).startswith(str(begin))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[[mapping]]\npreset = 'zigbee'\n", "mapping[0].preset = 'zigbee' is not allowed"),
        ("[[mapping]]\nmap = {}\n", "mapping[0]: preset or topics must be given"),
        ("[[mapping]]\ntopics = ['a/b']\n", "mapping[0]: a/b: a level must be {node}"),
        ("[[maping]]\n", "did you mean mapping?"),
        ("[[expectation]]\nquantity = 't'\n", "unit, minimum, maximum, rate, stuck or every"),
        (
            "[[expectation]]\nquantity = 't'\nminimum = 3\nmaximum = 2\n",
            "expectation[0].minimum = 3.0 is not allowed: at most the maximum",
        ),
        ("[kinds]\nt = 'sum'\n", "kinds = "),
        ("x = ", "is not TOML"),
    ],
)
def test_a_mistake_is_named(text: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "readings.toml"
    file.write_text(text)
    with pytest.raises(PipelineError) as raised:
        read_declared(file)
    assert error in str(raised.value)
    assert str(file) in str(raised.value)
