"""No key of the configuration is forgotten: what a reload says is changed holds everywhere.

Every number of the file gets a value that is nowhere else. After a reload to other numbers none of
the old ones may be found in anything that the gateway holds.
"""

import asyncio
import gc
from asyncio import AbstractEventLoop
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from gateway.app.reload.reload import NEEDS_RESTART
from gateway.config.configuration import Configuration
from gateway.settings.declaration import Key, keys_of
from tests.app.reload.conftest import Changing
from tests.support.compiled import not_compiled
from tests.support.ports import free_port

PAGE = Path(__file__).parents[3] / "docs/operate/reload.md"

GIVEN = {
    "listener": "port = {port}\n",
    "subscription_filter": 'client = "x"\nfilter = "x"\nwhere = "qos = 1"\n',
    "retained_expiry": 'topic = "r/#"\n',
    "channel": 'name = "jobs"\nfilter = "jobs/#"\n',
    "uplink": 'url = "mqtt://127.0.0.1:9"\nbatch = "zlib"\nmqtt = "5"\n',
    "uplink.rule": 'topic = "s/#"\n',
    "uplink.stream": 'name = "main"\n',
    "uplink.down": 'topic = "d/#"\n',
    "delivery.device": 'policy = "buffered"\n',
    "delivery.device_persistent": 'policy = "buffered"\n',
    "delivery.application": 'policy = "buffered"\n',
    "delivery.rule": 'class = "device"\nclient = "x"\n',
    "durability": 'class = "memory"\ntopic = "x/#"\n',
    "metrics": "port = {metrics}\n",
}
"""What tables say beside the numbers."""

ARRAYS = {"uplink.rule", "uplink.stream", "uplink.down", "delivery.rule"}

BESIDE = {
    "listener.port": "an address, not a limit",
    "listener.path": "an address",
    "metrics.port": "an address",
    "broker.maximum_inflight": "settled at CONNECT; delayed messages have no use for theirs",
    "uplink.landing_maximum_bytes": "of a landing folder",
    "uplink.landing_maximum_age": "of a landing folder",
    "uplink.landing_interval": "of a landing folder",
    "uplink.stream.expire_after": "only for `expire`, which has no bound in age",
    "outbox.survive": "for `tidegate check` and the alarm `headroom`, by the file as it is",
    "outbox.expected_rate": "for `tidegate check`",
    "outbox.expected_bytes": "for `tidegate check`",
    "simulator.interval": "given to a process of its own",
}
"""Numbers that are not looked for."""

LEAST = 5_000
"""The lowest number of which only one is expected in a gateway; below it they are in use."""


def numbers_of(
    table: type = Configuration, path: str = ""
) -> Iterator[tuple[str, Key, dict[str, Any]]]:
    """Yield each key that takes a number, by its path, with the bounds of the number."""
    for key in keys_of(table):
        name = f"{path}.{key.name}" if path else key.name
        if key.table is not None:
            yield from numbers_of(key.table, name)
            continue
        schema = dict(key.check.schema)
        for bounds in schema.get("anyOf", [schema]):
            if bounds.get("type") in ("integer", "number"):
                yield name, key, bounds


def chosen(step: int) -> dict[str, int]:
    """Return a number for each key, in the same order for each step, and none twice."""
    found: dict[str, int] = {}
    for place, (name, _, bounds) in enumerate(numbers_of()):
        least, most = max(bounds.get("minimum", 0), LEAST), bounds.get("maximum", 2**60)
        value = least + 7 * (100 * place + 31) + step
        if name not in BESIDE and value <= most:
            found[name] = value
    found["broker.topic_alias_hard_bytes"] += 10**9  # above the soft ones
    found["broker.maximum_queued_bytes_total"] += 10**9
    found["channel.minimum_message_size"] = LEAST + step
    return found


def text_of(numbers: dict[str, int], **ports: int) -> str:
    """Return a file with these numbers."""
    tables: dict[str, list[str]] = {name: [] for name in GIVEN}
    for name, value in numbers.items():
        table, _, key = name.rpartition(".")
        tables.setdefault(table, []).append(f"{key} = {value}\n")
    many = {key.name for key in keys_of(Configuration) if key.many} | ARRAYS
    return "".join(
        (f"[[{table}]]\n" if table in many else f"[{table}]\n")
        + GIVEN.get(table, "").format(**ports)
        + "".join(lines)
        for table, lines in sorted(tables.items())
    )


def held_by(*roots: object) -> dict[int, str]:
    """Return the whole numbers that can be reached, each with the types on the way to it."""
    skipped = (ModuleType, type, CodeType, BuiltinFunctionType, AbstractEventLoop)
    seen: dict[int, object] = {}
    ways: dict[int, str] = {}
    waiting: list[tuple[object, str]] = [(root, type(root).__name__) for root in roots]
    while waiting:
        each, way = waiting.pop()
        if id(each) in seen or isinstance(each, skipped):
            continue
        seen[id(each)] = each
        if isinstance(each, FunctionType):  # not all that its module has
            parts: list[object] = [each.__closure__, each.__defaults__, each.__kwdefaults__]
        else:
            parts = gc.get_referents(each)
        for part in parts:
            if isinstance(part, int | float):
                if part == part // 1:  # no infinity, and no measured time
                    ways.setdefault(int(part), way)
            elif part is not None and not isinstance(part, str | bytes):
                waiting.append((part, f"{way} > {type(part).__name__}"[-160:]))
    return ways


@pytest.mark.skipif(not not_compiled(), reason="numbers of compiled classes cannot be seen")
async def test_no_number_of_before_is_held_anywhere(changing: Changing) -> None:
    ports = {"port": free_port(), "metrics": free_port()}
    old, new = chosen(0), chosen(1)
    await changing.start(text_of(old, **ports))
    client = await changing.clients.connect("c")
    await client.subscribe("x")
    known = held_by(changing.gateway, changing.gateway.parts)
    looked_for = {name: value for name, value in old.items() if value in known}
    assert len(looked_for) > 60  # else the numbers are not found where they are
    await client.close()
    answer = await changing.reload(text_of(new, **ports))
    assert (answer["refused"], answer["restart"]) == ([], [])
    await changing.operator.close()  # what a CONNECT has settled stays with its connection
    async with asyncio.timeout(30):
        while changing.gateway.broker.sessions:  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0.01)
    changing.gateway.telemetry.sys_topics.publish()
    left = held_by(changing.gateway, changing.gateway.parts)
    forgotten = {name: left[value] for name, value in looked_for.items() if value in left}
    assert not forgotten, "\n".join(f"{name}: {way}" for name, way in forgotten.items())


def test_what_needs_a_restart_is_a_key_and_every_table_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    tables = {key.name: key for key in keys_of(Configuration)}
    for name in NEEDS_RESTART:
        table, _, key = name.partition(".")
        assert key in {each.name for each in keys_of(tables[table].table or object)}
    assert [name for name in tables if f"[{name}" not in page] == []
