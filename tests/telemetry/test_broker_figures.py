import pytest

from gateway.clock import Clock
from gateway.mqtt.packets import PubAck, Publish
from gateway.telemetry.sys_topics import LOAD_INTERVAL, LOADS, MINUTES, OTHER_LOADS, BrokerFigures
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness


class HarnessClock(Clock):
    """Shows the harness's time."""

    __slots__ = ("harness",)

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    def monotonic(self) -> float:
        return self.harness.now


@pytest.fixture
def harness() -> Harness:
    return Harness()


@pytest.fixture
def figures(harness: Harness) -> BrokerFigures:
    return BrokerFigures(harness.broker, harness.counters, HarnessClock(harness))


def expect(harness: Harness, **expected: object) -> None:
    """Compare gauges; in a name `__` stands for `/`."""
    names = {name.replace("__", "/"): value for name, value in expected.items()}
    assert {name: harness.counters.values[name] for name in names} == names


def test_clients(harness: Harness, figures: BrokerFigures) -> None:
    harness.persistent("a").drop()
    harness.connect("b")
    harness.connect("c", session_expiry=5).drop()
    harness.pass_time(5)
    figures.refresh()
    expect(
        harness,
        uptime="5 seconds",
        clients__connected=1,
        clients__active=1,
        clients__disconnected=1,
        clients__inactive=1,
        clients__total=2,
        clients__maximum=1,
        clients__expired=1,
    )
    for number in range(3):
        harness.connect(f"c{number}")
    figures.refresh()
    for client in harness.clients[1:]:
        client.drop()
    figures.refresh()
    expect(harness, clients__connected=1, clients__maximum=4)


def test_rows_that_were_spared(harness: Harness, figures: BrokerFigures) -> None:
    figures.refresh()
    assert "tidegate/storage/elided_rows" not in harness.counters.values  # nothing is ever written
    durable = DurableHarness()
    shown = BrokerFigures(durable.broker, durable.counters, HarnessClock(durable))
    subscriber = durable.persistent("s")
    subscriber.subscribe("t", 1)
    durable.commits = False
    durable.connect("p").send(Publish("t", b"x", 1, packet_id=1))
    subscriber.send(PubAck(1))
    shown.refresh()
    expect(durable, tidegate__storage__elided_rows=2)


def test_subscriptions(harness: Harness, figures: BrokerFigures) -> None:
    client = harness.connect()
    for topic_filter in ("a", "$share/g/a", "b/#"):
        client.subscribe(topic_filter)
    figures.refresh()
    expect(harness, subscriptions__count=3, shared_subscriptions__count=1)


def test_messages(harness: Harness, figures: BrokerFigures) -> None:
    for name in ("x", "y"):
        client = harness.persistent(name)
        client.subscribe("a", 1)
        client.drop()
    here = harness.connect("here")
    here.subscribe("#")
    here.send(Publish("a", b"123", 1, packet_id=1), Publish("b", b"12345", retain=True))
    figures.refresh()
    expect(
        harness,
        publish__messages__received=2,
        publish__bytes__received=8,
        publish__messages__sent=2,
        publish__bytes__sent=8,
        publish__messages__dropped=0,
        messages__stored=2,
        store__messages__count=2,
        tidegate__queues__messages=2,
    )
    assert harness.counters.count("retained messages/count") == 1
    assert harness.counters.count("store/messages/bytes") > 1_000


def test_loads(harness: Harness, figures: BrokerFigures) -> None:
    names = [f"load/{name}/{minutes}min" for name in (*LOADS, *OTHER_LOADS) for minutes in MINUTES]
    assert {harness.counters.values[name] for name in names} == {"0.00"}
    receiver = harness.connect("receiver")
    receiver.subscribe("a")
    for number in range(9):
        harness.connect(f"c{number}").send(Publish("a", b"x"))
    harness.open()
    harness.now += LOAD_INTERVAL - 1
    figures.refresh()
    assert harness.counters.values["load/publish/received/1min"] == "0.00"
    harness.now += 1
    figures.refresh()
    share = 0.153518 * 6  # of a count in the average over a minute, as a rise in a minute
    for name, count in {
        "publish/received": 9,
        "publish/sent": 9,
        "publish/dropped": 0,
        "messages/received": 20,
        "connections": 10,
        "sockets": 11,
    }.items():
        shown = float(harness.counters.values[f"load/{name}/1min"])
        assert shown == pytest.approx(count * share, abs=0.01), name
    before = dict(harness.counters.values)
    harness.now += 1
    figures.refresh()
    assert before == {**harness.counters.values, "uptime": before["uptime"]}


def test_bytes_of_the_network(harness: Harness, figures: BrokerFigures) -> None:
    client = harness.connect()
    client.send(Publish("a", b"payload"))
    harness.broker.traffic.network_sent += 7  # as a transport does
    figures.refresh()
    received = harness.broker.traffic.network_received
    assert received > len("payload")
    assert harness.counters.values["bytes/received"] == received
    assert harness.counters.values["bytes/sent"] == 7
