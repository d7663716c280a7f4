"""Registers: values out of words and back, neighbours in one request, maps that are refused."""

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.register import LAYOUTS, Register, is_news
from gateway.bridges.modbus.requests import ABSENT_MAX, Device, plan
from gateway.config.reader import Reader
from tests.support.table import table

WORDS = [
    ("int16", "big", 1.0, [0xFFFE], -2),
    ("uint16", "big", 0.1, [215], 21.5),
    ("int32", "big", 1.0, [0xFFFF, 0xFFFE], -2),
    ("uint32", "little", 1.0, [1, 2], 0x20001),
    ("float32", "big", 1.0, [0x41AC, 0x0000], 21.5),
    ("float32", "little", 1.0, [0x0000, 0x41AC], 21.5),
    ("uint64", "big", 1.0, [0, 0, 1, 0], 65_536),
    ("float64", "little", 2.0, [0, 0, 0, 0x3FF0], 2.0),
]


@table(("form", "order", "scale", "words", "value"), WORDS)
def test_words_are_a_value_and_a_value_is_words(
    form: str, order: str, scale: float, words: list[int], value: float
) -> None:
    register = Register(0, "x", type=form, word_order=order, scale=scale)
    assert register.value(words) == value
    assert register.words(value) == words


def test_a_float_has_its_shortest_text_and_markers_are_no_values() -> None:
    words = [0x4366, 0x3333]
    assert Register(0, "x", type="float32").value(words) == 230.2
    assert Register(0, "x", type="float32", scale=0.1).value(words) == 23.02
    night = Register(0, "x", type="int32", word_order="little", invalid=(0x80000000,))
    assert night.is_invalid([0, 0x8000])
    assert not night.is_invalid([0x8000, 0])
    assert Register(0, "x", invalid="usual").is_invalid([0xFFFF])
    assert not Register(0, "x").is_invalid([0xFFFF])
    assert not Register(0, "x", table="coil", invalid="usual").is_invalid([1])


@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from(["big", "little"]),
    st.integers(-(2**15), 2**15 - 1),
)
def test_what_is_written_is_read(form: str, order: str, value: int) -> None:
    register = Register(0, "x", type=form, word_order=order)
    number = abs(value) if form.startswith("u") else value
    assert register.value(register.words(number)) == number


@pytest.mark.parametrize("value", [65_536.0, -1.0, 1e300, math.inf, math.nan])
def test_what_does_not_fit_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="does not fit uint16"):
        Register(0, "x").words(value)


def test_neighbours_are_one_request() -> None:
    registers = [
        Register(0, "a", type="float32"),
        Register(2, "b"),
        Register(3, "c", interval=1.0),
        Register(9, "d"),
        Register(10, "e", table="input"),
        Register(11, "f", device=2),
        Register(0, "g", table="coil"),
        Register(1, "h", table="coil"),
        *(Register(1000 + place, f"x{place}") for place in range(121)),
    ]
    found = {
        (device.number, request.first.table, request.first.address): request.count
        for device in plan(registers)
        for request in device.requests
    }
    assert found == {
        (1, "holding", 0): 3,
        (1, "holding", 3): 1,
        (1, "holding", 9): 1,
        (1, "holding", 1000): 120,
        (1, "holding", 1120): 1,
        (1, "input", 10): 1,
        (1, "coil", 0): 2,
        (2, "holding", 11): 1,
    }


def test_a_device_that_does_not_answer_is_left_alone_ever_longer() -> None:
    (device,) = plan([Register(0, "a")])
    waits = []
    for _ in range(7):
        device.silent(100.0)
        waits.append(device.absent_until - 100.0)
    assert waits == [2, 4, 8, 16, 32, 60, ABSENT_MAX]
    device.answered()
    assert device.due() == 0
    assert isinstance(device, Device)


NEWS = [
    (None, 5, 5, True),
    (0.5, 21.0, 21.5, False),
    (0.5, 21.0, 21.6, True),
    (0.0, 5, 5, False),
    (0.0, True, False, True),
    (0.5, 21.0, math.nan, True),
]


@pytest.mark.parametrize(("deadband", "last", "value", "news"), NEWS)
def test_deadband(deadband: float | None, last: float, value: float, news: bool) -> None:
    assert is_news(Register(0, "x", deadband=deadband), last, value) is news


MISTAKES: list[tuple[Any, str]] = [
    ([], r"modbus.register .*0.*: 1 to 1000 tables"),
    ({"address": 1}, r"one for each"),
    ([5], r"register\[0\].*a table"),
    ([{"address": 1}], r"register\[0\].quantity.*must be given"),
    ([{"address": -1, "quantity": "x"}], r"register\[0\].address.*a whole number from 0"),
    ([{"address": 65_535, "quantity": "x", "type": "int32"}], "does not end at 65535"),
    ([{"address": 1, "quantity": "x", "scale": 0}], "scale.*anything but 0"),
    ([{"address": 1, "quantity": "x", "table": "input", "writable": True}], "only coils"),
    ([{"address": 1, "quantity": "x", "typ": "int32"}], "typ.*did you mean type"),
    ([{"address": 1, "quantity": "x", "invalid": "none"}], "invalid.*a list of numbers"),
    ([{"address": 1, "quantity": "a/b"}], "quantity.*1 to 64 characters"),
    ([{"address": 5, "quantity": "x", "scale_address": 5}], "scale_address.*behind the value"),
    ([{"address": 5, "quantity": "x", "scale_address": 999}], "scale_address.*at most 100"),
    (
        [{"address": 5, "quantity": "x", "scale_address": 6, "writable": True}],
        "scale_address.*are not written",
    ),
]


@table("value, reason", MISTAKES)
def test_maps_that_cannot_be_used(value: object, reason: str) -> None:
    reader = Reader("tidegate.toml")
    reader.read(ModbusSettings, {"port": "/dev/x", "register": value}, "modbus")
    (mistake,) = reader.mistakes
    assert re.search(reason, str(mistake))
