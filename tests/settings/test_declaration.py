from copy import copy
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from gateway.settings.declaration import settings_class
from tests.support.table import table


class Limits:
    first: int
    second: str = "b"
    third: tuple[int, ...] = field(default_factory=tuple)


MADE: Any = settings_class(type("Made", (), dict(vars(Limits))))
FROZEN: Any = dataclass(frozen=True, slots=True)(type("Made", (), dict(vars(Limits))))


@table(
    ("values", "named"),
    [
        ((1,), {}),
        ((), {"first": 1}),
        ((1, "x", (2,)), {}),
        ((1,), {"third": (3,), "second": "y"}),
        ((), {}),
        ((1, "x", (), 4), {}),
        ((1,), {"first": 2}),
        ((1,), {"fourth": 4}),
    ],
)
def test_it_takes_what_a_frozen_dataclass_takes(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    try:
        expected = FROZEN(*values, **named)
    except TypeError:
        with pytest.raises(TypeError, match="Made"):
            MADE(*values, **named)
        return
    made = MADE(*values, **named)
    assert repr(made) == repr(expected)
    assert hash(made) == hash(expected)
    assert [each.name for each in fields(made)] == [each.name for each in fields(expected)]
    assert made == MADE(*values, **named)
    assert made != expected
    assert repr(replace(made, second="z")) == repr(replace(expected, second="z"))


def test_it_cannot_be_changed() -> None:
    made = MADE(1)
    with pytest.raises(FrozenInstanceError, match=r"Made\.first"):
        made.first = 2
    with pytest.raises(FrozenInstanceError, match=r"Made\.first"):
        del made.first
    with pytest.raises((AttributeError, TypeError)):
        made.fourth = 4
    assert made == MADE(1) == copy(made)
