"""Requests that are refused, that are too many, and the time that one takes at a stretch."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app import responder as module
from gateway.app.responder import MAXIMUM_ANSWER, MAXIMUM_REQUEST, MAXIMUM_WAITING, Request
from gateway.config.load import load
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.operator import ANSWERS, Operator
from tests.support.ports import free_port
from tests.support.raw_client import RawClient

CONFIG = """
[[listener]]
port = {port}
[[listener]]
port = {closed}
acl_file = "{acl}"
"""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    (tmp_path / "acl").write_text(
        "user anna\ntopic write $CONTROL/tidegate/query/clients\ntopic read $CONTROL/answers/#\n"
        "topic write mine\nuser bert\ntopic readwrite #\n"
    )
    file = tmp_path / "gateway.toml"
    file.write_text(
        CONFIG.format(port=free_port(), closed=free_port(), acl=tmp_path / "acl"), "utf-8"
    )
    async with AsyncExitStack() as stack:
        made = Gateway(load(file), tmp_path / "data", stack)
        await made.start()
        yield made


def ports(gateway: Gateway) -> list[int]:
    return [each.port for each in gateway.configuration.listeners]


async def test_what_is_wrong_with_a_request_is_answered(gateway: Gateway) -> None:
    operator = await Operator.open(ports(gateway)[0])
    for what, payload, said in (
        ("nothing", b"{}", "there is no query 'nothing'; there are: "),
        ("clients", b"{", "the request is no JSON"),
        ("clients", b"[" * 10_000, "the request is no JSON"),
        ("clients", b"[]", "a request is a JSON object"),
        ("clients", b" " * (MAXIMUM_REQUEST + 1), "16385 bytes; a request has at most 16384"),
        ("clients", b" " * 1_000_000, "1000000 bytes; a request has at most"),
        ("clients", b'{"x":1}', "unknown key 'x'; clients has: match, user"),
        ("clients", b'{"match":1}', "match is 1, not a text"),
        ("clients", b'{"sort":"age"}', "sort is 'age', not one of id,"),
        ("clients", b'{"limit":0}', "limit is 0, not a whole number 1 to 500"),
        ("clients", b'{"limit":true}', "limit is True, not a whole number"),
        ("clients", b'{"limit":1.5}', "limit is 1.5, not a whole number"),
        ("clients", b'{"offset":-1}', "offset is -1, not a whole number 0 to"),
        ("clients", b'{"offset":1e99}', "offset is 1e+99, not a whole number 0 to"),
        ("clients", b'{"seconds":99}', "seconds is 99, not a number of seconds 0 to 10"),
        ("clients", b'{"seconds":"' + b"9" * 500 + b'"}', "…, not a number of seconds"),
        ("client", b"{}", "client needs id, a text"),
    ):
        await operator.send(what, payload, qos=0)
        assert said in (await operator.answer())["error"], (what, payload)
    assert gateway.counters.count("tidegate/queries/refused") == 17
    assert await operator.code("nothing") == 0x99
    assert await operator.code("clients") == 0
    await operator.close()


async def test_no_answer_can_go_without_a_response_topic_of_the_client(gateway: Gateway) -> None:
    operator = await Operator.open(ports(gateway)[0])
    for topic in (None, "$SYS/broker/uptime", "$CONTROL/tidegate/uplink"):
        assert await operator.code("clients", topic=topic) == 0x90, topic
    assert await operator.code("clients", topic="mine") == 0
    await operator.close()


async def test_only_operators_are_answered_where_there_are_rules(gateway: Gateway) -> None:
    closed = ports(gateway)[1]
    bert = await RawClient.open(closed)
    await bert.connect_as("bert", username="bert")
    assert await bert.subscribe(ANSWERS) == 0x87
    assert await Operator(bert).code("clients", topic="mine") == 0x87
    await bert.close()
    anna = await Operator.open(closed, "anna", username="anna")
    assert await anna.code("client/disconnect", b'{"id":"bert"}') == 0x87
    assert await anna.code("clients", topic="not/mine") == 0x87
    assert (await anna.ask("clients"))["total"] == 1
    await anna.close()


async def test_a_thousand_at_once_are_answered_or_refused(gateway: Gateway) -> None:
    operator = await Operator.open(ports(gateway)[0])
    properties = Properties(response_topic=ANSWERS)
    publish = Publish("$CONTROL/tidegate/query/clients", b"", 0, properties=properties)
    await operator.client.send(*[publish] * 1_000)
    answers = [await operator.answer() for _ in range(1_000)]
    refused = [each["error"] for each in answers if "error" in each]
    assert set(refused) <= {f"{MAXIMUM_WAITING} requests wait already; try again later"}
    assert 0 < len(refused) < 1_000
    await operator.close()


async def test_refusals_are_answered_in_slices_and_a_bounded_number_of_them(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLICE", 0.0)
    monkeypatch.setattr(module, "MAXIMUM_REFUSED", 5)
    operator = await Operator.open(ports(gateway)[0])
    properties = Properties(response_topic=ANSWERS)
    publish = Publish("$CONTROL/tidegate/query/nothing", b"", 0, properties=properties)
    await operator.client.send(*[publish] * 300)
    count = gateway.counters.count
    await until(lambda: count("tidegate/queries/refused") == 300)
    unanswered = count("tidegate/queries/unanswered")
    assert 0 < unanswered < 300
    for _ in range(300 - unanswered):
        assert "there is no query 'nothing'" in (await operator.answer())["error"]
    assert await operator.refused("clients", sort="age")
    await operator.close()


async def test_requests_without_a_response_topic_do_not_fill_the_log(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = await Operator.open(ports(gateway)[0])
    publish = Publish("$CONTROL/tidegate/query/clients", b"", 0)
    monkeypatch.setattr(module, "LINE_SECONDS", 0.2)
    await operator.client.send(*[publish] * 200)
    await until(lambda: gateway.counters.count("tidegate/queries/refused") == 200)
    said = "query 'clients' of client 'operator': response topic None: there is no Response Topic"
    while not caplog.messages[-1].endswith(" more since the last line)"):
        assert await operator.code("clients", topic=None) == 0x90
    lines = [each for each in caplog.messages if each.startswith(said)]
    assert lines[0] == said
    assert len(lines) < 200
    await operator.close()


async def test_a_page_ends_with_so_many_bytes_and_says_where_the_next_one_begins() -> None:
    names = [f"{number:03}" for number in range(100)]
    found: list[object] = []
    offset: object = 0
    pages = 0
    while offset is not None:
        request = Request("clients", {"offset": offset, "limit": 500}, "", asyncio.Lock())
        page = await request.page(names, lambda name: {"name": name, "more": "x" * 5_000})
        rows = page["rows"]
        assert isinstance(rows, list)
        assert len(json.dumps(rows)) < MAXIMUM_ANSWER + 2_000
        found += [row["name"] for row in rows]
        offset = page.get("next")
        pages += 1
    assert (found, pages) == (names, 8)
    beyond = await Request("clients", {"offset": 500}, "", asyncio.Lock()).page(names, str.split)  # type: ignore[arg-type]  # nobody calls it
    assert beyond == {"total": 100, "offset": 500, "rows": []}


async def test_what_has_gone_has_no_row() -> None:
    request = Request("clients", {}, "", asyncio.Lock())
    page = await request.page(["a", "b"], lambda name: {"name": name} if name == "b" else None)
    assert page == {"total": 2, "offset": 0, "rows": [{"name": "b"}]}


async def test_others_have_a_turn_at_the_end_of_each_slice() -> None:
    request, turns = Request("clients", {}, "", asyncio.Lock()), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.get_running_loop().create_task(others())
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.05
    while loop.time() < until:
        await request.breathe()
    task.cancel()
    assert turns >= 3
