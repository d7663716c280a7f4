import ast
import functools
import json
import re
from pathlib import Path
from random import randrange

import pytest

from gateway.broker.broker import Broker
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.packets import Publish
from gateway.settings.broker import BrokerSettings
from gateway.telemetry.sys_topics import SysTopics
from gateway.version import VERSION
from tests.support.broker.broker_harness import Harness
from tests.support.broker.sys_topics import declared, documented
from tests.support.clocks import NOW, ManualClock
from tests.support.disk.storage import until
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

ROOT = Path(__file__).parents[2]
PREFIX = "$SYS/broker/"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def published() -> list[Message]:
    return []


@pytest.fixture
def harness() -> Harness:
    return Harness()


@pytest.fixture
def sys_topics(clock: ManualClock, harness: Harness, published: list[Message]) -> SysTopics:
    return SysTopics(harness.broker, harness.counters, clock, published.append, 0.01)


def said(published: list[Message]) -> dict[str, str]:
    """Return what was published since the last time, by the name below $SYS/broker/."""
    figures = {
        message.topic.removeprefix(PREFIX): message.payload.decode() for message in published
    }
    published.clear()
    return figures


def test_every_figure_is_said_and_then_what_has_changed(
    sys_topics: SysTopics, harness: Harness, clock: ManualClock, published: list[Message]
) -> None:
    harness.counters.add("tidegate/outbox/rows", 3)
    sys_topics.publish()
    assert all(message.retain and not message.qos for message in published)
    assert {message.client_id for message in published} == {"$SYS"}
    figures = said(published)
    assert figures["version"] == f"tidegate {VERSION}"
    assert figures["tidegate/outbox/rows"] == "3"
    assert figures["uptime"] == "0 seconds"
    sys_topics.publish()
    assert not said(published)
    clock.step(61.5)
    harness.counters.add("tidegate/outbox/rows")
    sys_topics.publish()
    assert said(published) == {"uptime": "61 seconds", "tidegate/outbox/rows": "4"}


def test_a_round_ends_with_the_uptime_and_is_of_one_moment(
    sys_topics: SysTopics, harness: Harness, clock: ManualClock, published: list[Message]
) -> None:
    """A round sends figures itself: its counter of them is of before, as that of all messages."""
    sent = "tidegate/sys/messages_sent"
    harness.counters.add(sent, 7)
    sys_topics.publish()
    clock.step(1)
    published.clear()
    for name in (sent, "tidegate/a", "tidegate/queries/answered"):
        harness.counters.add(name)
    round_of = sys_topics._changes()
    next(round_of)
    harness.counters.add(sent, 100)
    list(round_of)
    assert published[-1].topic == f"{PREFIX}uptime"
    assert said(published)[sent] == "8"
    clock.step(1)
    sys_topics.publish()
    assert said(published)[sent] == "108"


def test_what_is_said_in_pieces_is_what_holds_when_its_turn_comes(
    sys_topics: SysTopics, harness: Harness, published: list[Message]
) -> None:
    sys_topics.publish()
    harness.counters.set("tidegate/gone", 1)
    sys_topics.publish()
    for name in ("tidegate/a", "tidegate/b"):
        harness.counters.set(name, 0)
    harness.counters.forget("tidegate/gone")
    pieces = sys_topics._changes()
    next(pieces)
    harness.counters.set("tidegate/b", 4)
    sys_topics.publish()  # another wants all of it at once
    assert said(published)["tidegate/b"] == "4"
    assert [*pieces] == []
    assert not said(published)


def test_other_parts_can_refresh_their_figures(
    sys_topics: SysTopics, harness: Harness, published: list[Message]
) -> None:
    sys_topics.refresh.append(lambda: harness.counters.set("tidegate/outbox/oldest_seconds", 7))
    sys_topics.publish()
    assert said(published)["tidegate/outbox/oldest_seconds"] == "7"


def test_figures_of_what_is_gone_are_taken_back_at_once(
    sys_topics: SysTopics, harness: Harness, published: list[Message]
) -> None:
    harness.counters.set("tidegate/channels/jobs/depth", 1)
    harness.counters.set("tidegate/channels/jobs2/depth", 2)
    sys_topics.publish()
    said(published)
    harness.counters.set("tidegate/channels/jobs/new", 1)  # and not said yet
    sys_topics.forget("tidegate/channels/jobs/")
    assert said(published) == {"tidegate/channels/jobs/depth": ""}
    assert "tidegate/channels/jobs/new" not in harness.counters.values
    assert harness.counters.values["tidegate/channels/jobs2/depth"] == 2


def test_an_alarm_is_raised_and_ended(sys_topics: SysTopics, published: list[Message]) -> None:
    sys_topics.alarm("storage", "the disk is full: °")
    sys_topics.alarm("storage", "")
    raised, ended = published
    assert raised.topic == ended.topic == f"{PREFIX}tidegate/alarm/storage"
    assert raised.retain
    assert ended.retain
    assert json.loads(raised.payload) == {"raised": NOW, "text": "the disk is full: °"}
    assert ended.payload == b""


async def test_figures_are_said_again_and_again_until_the_stop(
    sys_topics: SysTopics, clock: ManualClock, published: list[Message]
) -> None:
    sys_topics.stop()  # before it has begun
    sys_topics.start()
    for _ in range(3):
        published.clear()
        clock.step(1)
        await until(lambda: bool(published))
    sys_topics.stop()


# --- the table ------------------------------------------------------------------------------

PLACEHOLDER = re.compile(r"<\w+>")


@functools.cache
def in_the_code() -> list[tuple[str, str]]:
    """Return the place and the name of every counter and gauge; what is computed becomes <x>."""
    found = []
    for path in sorted((ROOT / "gateway").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and re.search(
                r"\bcounters\.(add|set)$|_counters\.(add|set)$", ast.unparse(node.func)
            ):
                name = _name(node.args[0])
                if name is not None:
                    found.append((f"{path.relative_to(ROOT)}:{node.lineno}", name))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr):
                name = _name(node.value)  # one that is kept, to be put together once
                if name is not None and re.fullmatch(r"tidegate/.*[^/]", name):
                    found.append((f"{path.relative_to(ROOT)}:{node.lineno}", name))
    return found


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_name(part) or "<x>" for part in node.values)
    return None


def pattern(name: str) -> re.Pattern[str]:
    parts = PLACEHOLDER.split(name)
    return re.compile(".+".join(re.escape(part) for part in parts))


@pytest.mark.uncovered
def test_every_figure_of_the_code_is_in_the_table() -> None:
    names = documented() | declared()
    lacking = [
        f"{place}: {name}"
        for place, name in in_the_code()
        if not any(pattern(name).fullmatch(known) for known in names)
    ]
    assert not lacking


@pytest.mark.uncovered
def test_every_figure_of_the_table_is_in_the_code() -> None:
    written = [pattern(name) for _, name in in_the_code()]
    computed = {"tidegate/alarm/<name>", "tidegate/log"}
    lacking = {name for name in documented() if not any(one.fullmatch(name) for one in written)}
    assert lacking <= computed


async def test_a_running_gateway_says_nothing_else(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path, "[broker]\nsys_interval = 0.1\n[uplink]\n")
    gateway.start()
    clients = Clients(gateway.port)
    watcher = await clients.connect("watcher")
    await watcher.subscribe("$SYS/#")
    await (await clients.connect("loud")).send_bytes(b"\x00\x00")
    topics = await _until_log_line(watcher)
    await clients.close()
    assert gateway.stop() == 0
    known = [pattern(name) for name in documented()]
    unknown = {
        topic
        for topic in topics
        if not any(one.fullmatch(topic.removeprefix(PREFIX)) for one in known)
    }
    assert not unknown
    for name in ("version", "uptime", "clients/connected", "tidegate/gateway/id"):
        assert PREFIX + name in topics


async def _until_log_line(watcher: RawClient) -> set[str]:
    """Return the topics up to the line that says that a client was closed."""
    topics: set[str] = set()
    while True:
        publish = await watcher.take(Publish)
        topics.add(publish.topic)
        if publish.topic == f"{PREFIX}tidegate/log":
            line = json.loads(publish.payload)
            assert not publish.retain
            if str(line["message"]).startswith("closing client 'loud' at 127.0.0.1:"):
                assert (line["level"], line["logger"]) == ("WARNING", "gateway.broker.broker")
                return topics


def test_counters() -> None:
    counters = Counters()
    assert counters.count("a") == 0
    counters.add("a")
    counters.add("a", 2)
    counters.set("b", "text")
    assert counters.count("a") == 3
    assert counters.values == {"a": 3, "b": "text"}
    assert (
        Broker(BrokerSettings(), counters, new_client_id=str, randrange=randrange).counters
        is counters
    )
