"""The comparison rule (where-language 5)."""

import operator
from collections.abc import Callable
from typing import Any, Final

from gateway.where.language.conversions import Value, to_boolean, to_number

Order = Callable[[Any, Any], bool]

ORDERS: Final[dict[str, Order]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Python's own orders fit: text by code points, int and float as exact values."""

MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`a < b` is `b > a`."""


def compare(order: Order, left: Value, right: Value) -> bool | None:
    """Compare two values of any type; None is NULL."""
    left_type, right_type = type(left), type(right)
    if left_type is right_type and (left_type is str or left_type is bool):
        return order(left, right)
    if (left_type is bool and right_type is str) or (left_type is str and right_type is bool):
        first: object = to_boolean(left)
        second: object = to_boolean(right)
    else:
        first, second = to_number(left), to_number(right)
    return None if first is None or second is None else order(first, second)
