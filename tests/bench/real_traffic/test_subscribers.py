import json

from bench.real_traffic.plan import Reading, readings
from bench.real_traffic.subscribers import filtered, many_filters, one_and_ten
from gateway.mqtt.message import Message
from gateway.where.compile import compile_where
from tests.support.table import table


def test_there_is_one_of_everything_and_ten_with_a_plus() -> None:
    names = [name for subscriber in one_and_ten() for name in subscriber.filters]
    assert names[0] == "#"
    assert len(names[1:]) == sum("+" in name for name in names) == 10


def test_many_filters_are_twenty_each_and_of_different_devices() -> None:
    for subscriber in many_filters(200, publishers=20, devices=10):
        devices = {name.rpartition("/")[0] for name in subscriber.filters}
        assert len(subscriber.filters) == len(devices) == 20
        assert sum(name.endswith("/+") for name in subscriber.filters) == 2


def test_expressions_differ() -> None:
    assert len({subscriber.where for subscriber in filtered(100)}) == 100


@table("number", range(8))
def test_a_condition_says_what_its_where_says(number: int) -> None:
    subscriber = filtered(8)[number]
    assert subscriber.where is not None
    assert subscriber.condition is not None
    where = compile_where(subscriber.where)
    edges = [98 + number / 100, 98.5, 99]
    units = ("C", "K")
    more: list[Reading] = [
        {"value": value, "unit": unit, "rack": f"r{rack}"}
        for value in edges
        for unit in units
        for rack in range(8)
    ]
    for reading in [*readings(), *more]:
        message = Message("t", json.dumps(reading).encode(), client_id="c", user_properties=())
        assert where.passes(message) is subscriber.condition(reading), reading
