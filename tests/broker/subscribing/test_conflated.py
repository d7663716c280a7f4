"""`$every`: of each topic at most the newest message in a time, and the newest always comes."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.broker import access
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.broker.subscribing import conflated
from gateway.mqtt.message import Message
from gateway.mqtt.packets import PubAck, Publish, SubAck, Subscribe, UnsubAck, Unsubscribe
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pieces import complete
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.rights import only
from tests.support.broker.subscribing import request
from tests.support.table import table

SECOND = 1.0 + conflated.STEP
"""After which what `$every` of 1000 holds has come for sure."""


def subscribe(
    client: MemoryClient,
    every: str | None = "1000",
    topic_filter: str = "#",
    qos: int = 0,
    identifier: int | None = None,
    **more: str | None,
) -> SubAck:
    """Subscribe with these user properties; what came before the SUBACK stays in the inbox."""
    given = {"every": every, **more}
    properties = Properties(
        user_properties=tuple(
            (f"${name}", each) for name, each in given.items() if each is not None
        ),
        subscription_identifiers=() if identifier is None else (identifier,),
    )
    client.send(Subscribe(9, [request(topic_filter, qos)], properties))
    taken = client.take()
    (suback,) = (each for each in taken if isinstance(each, SubAck))
    client.inbox[:0] = [each for each in taken if each is not suback]
    return suback


def got(client: MemoryClient) -> str:
    """What came since the last time; messages of QoS 1 are acknowledged."""
    taken = [each for each in client.take() if isinstance(each, Publish)]
    for each in taken:
        if each.qos:
            client.send(PubAck(each.packet_id or 0))
    return " ".join(f"{each.topic}{each.payload.decode()}" for each in taken)


def values(harness: Harness) -> dict[str, int]:
    counters, conflation = harness.counters, harness.broker.conflation
    superseded = counters.count("tidegate/conflated/superseded")
    not_held = counters.count("tidegate/conflated/not_held")
    return {"topics": conflation.topics, "superseded": superseded, "not_held": not_held}


def is_empty(harness: Harness) -> bool:
    conflation, memory = harness.broker.conflation, harness.broker.queue_memory
    return (conflation.topics, conflation.bytes, memory.bytes, memory.deliveries) == (0, 0, 0, 0)


def test_a_topics_first_message_comes_at_once_and_then_the_newest_of_each_second() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client)
    for payload in b"123":
        harness.publish("a", b"%c" % payload)
    harness.publish("b", b"1")
    assert got(client) == "a1 b1"
    harness.pass_time(0.99)
    assert got(client) == ""
    harness.pass_time(0.01 + conflated.STEP)
    assert got(client) == "a3"
    harness.publish("b", b"2")  # its second is over, with nothing to be sent
    harness.publish("a", b"4")
    assert got(client) == "b2"
    harness.pass_time(SECOND)
    assert got(client) == "a4"
    assert values(harness) == {"topics": 1, "superseded": 1, "not_held": 0}
    harness.pass_time(SECOND)
    harness.pass_time(SECOND)
    assert got(client) == ""
    assert is_empty(harness)


def test_others_get_each_message() -> None:
    harness = Harness()
    client, other = harness.connect(), harness.connect("other")
    subscribe(client)
    other.subscribe("a")
    for payload in b"123":
        harness.publish("a", b"%c" % payload)
    assert (got(client), got(other)) == ("a1", "a1 a2 a3")


def test_a_burst_in_one_read_is_conflated_as_single_messages_are() -> None:
    for topics in ("aaaa", "abab", "a"):
        harness = Harness()
        client, publisher = harness.connect(), harness.connect("p")
        subscribe(client)
        publisher.send(*[Publish(each, b"%d" % n) for n, each in enumerate(topics)])
        first = {each: topics.index(each) for each in topics}
        last = {each: topics.rindex(each) for each in topics}
        assert got(client) == " ".join(f"{each}{n}" for each, n in first.items())
        harness.pass_time(SECOND)
        rest = [f"{each}{n}" for each, n in last.items() if n != first[each]]
        assert got(client) == " ".join(rest)
        assert values(harness)["superseded"] == len(topics) - len(first) - len(rest)


@table(
    "every",
    ["abc", "", "0", "-1", "9", "3600001", "1e12", "1000000000000", "1.5", " 10", "٣٣٣", "10ms"],
)
def test_a_value_that_is_none_is_refused_with_a_reason(every: str) -> None:
    harness = Harness()
    client = harness.connect()
    suback = subscribe(client, every)
    assert suback.reason_codes == [ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR]
    reason = suback.properties.reason_string
    assert reason == f"$every: {every!r}: it is a whole number of milliseconds, 10 to 3600000"
    assert len(harness.broker.router) == 0


def test_a_value_given_twice_is_refused_and_so_is_a_shared_subscription() -> None:
    harness = Harness()
    client = harness.connect()
    properties = Properties(user_properties=(("$every", "10"), ("$every", "20")))
    client.send(Subscribe(9, [request("a")], properties))
    suback = client.take_only(SubAck)
    assert suback.properties.reason_string == "$every: it is given more than once"
    properties = Properties(user_properties=(("$every", "10"),))
    client.send(Subscribe(9, [request("$share/g/a"), request("a")], properties))
    suback = client.take_only(SubAck)
    assert suback.reason_codes == [ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, 0]
    assert "shared" in (suback.properties.reason_string or "")


def test_the_filter_decides_before_the_newest_is_taken() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, where="payload.v > 1")
    for value in (1, 2, 3, 0):
        harness.publish("a", b'{"v":%d}' % value)
    assert got(client) == 'a{"v":2}'
    harness.pass_time(SECOND)
    assert got(client) == 'a{"v":3}'


def test_no_local_keeps_a_clients_own_messages_from_counting() -> None:
    harness = Harness()
    client = harness.connect()
    properties = Properties(user_properties=(("$every", "1000"),))
    client.send(Subscribe(9, [request("a", no_local=True)], properties))
    client.take()
    client.send(Publish("a", b"own"))
    harness.publish("a", b"1")
    harness.publish("a", b"2")
    client.send(Publish("a", b"own"))
    assert got(client) == "a1"
    harness.pass_time(SECOND)
    assert got(client) == "a2"


def test_where_subscriptions_overlap_the_shortest_time_counts_and_one_without_is_the_shortest() -> (
    None
):
    harness = Harness()
    client = harness.connect()
    subscribe(client, "60000", "#", identifier=1)
    subscribe(client, "1000", "a", identifier=2)
    harness.publish("a", b"1")
    harness.publish("a", b"2")
    first = client.take()[0]
    assert isinstance(first, Publish)
    assert sorted(first.properties.subscription_identifiers) == [1, 2]
    harness.pass_time(SECOND)
    assert got(client) == "a2"
    harness.publish("a", b"3")
    subscribe(client, None, "a")
    assert got(client) == "a3", "what was held comes before the change"
    harness.publish("a", b"4")
    harness.publish("a", b"5")
    harness.publish("b", b"1")
    harness.publish("b", b"2")
    assert got(client) == "a4 a5 b1"


def test_a_newer_message_that_another_filter_lets_through_is_followed_by_no_older_one() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, None, "+", where="payload.alarm")  # was there, with its destination, before
    harness.publish("a", b'{"alarm":true}')
    assert got(client) == 'a{"alarm":true}'
    subscribe(client, "1000", "#", where="payload.v > 0")
    for payload in (b'{"v":1}', b'{"v":2}', b'{"alarm":true,"v":0}', b'{"alarm":true,"v":3}'):
        harness.publish("a", payload)
    assert got(client) == 'a{"v":1} a{"alarm":true,"v":0} a{"alarm":true,"v":3}'
    harness.pass_time(SECOND)
    assert got(client) == ""
    assert values(harness)["superseded"] == 1


def test_another_value_holds_from_the_next_message_on() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, "3600000")
    harness.publish("a", b"1")
    harness.publish("a", b"2")
    assert got(client) == "a1"
    subscribe(client, "1000")
    assert got(client) == "a2"
    harness.publish("a", b"3")
    harness.publish("a", b"4")
    assert got(client) == "a3"
    harness.pass_time(SECOND)
    assert got(client) == "a4"


def test_what_is_held_comes_before_the_answer_to_unsubscribe_and_nothing_after() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, "1000", "+")
    subscribe(client, "1000", "b/c")
    for topic in ("a", "b/c"):
        harness.publish(topic, b"1")
        harness.publish(topic, b"2")
    assert got(client) == "a1 b/c1"
    client.send(Unsubscribe(3, ["+", "none"]))
    newest, unsuback = client.take()
    assert isinstance(newest, Publish)
    assert newest.payload == b"2"
    assert isinstance(unsuback, UnsubAck)
    assert unsuback.reason_codes == [0, ReasonCode.NO_SUBSCRIPTION_EXISTED]
    harness.publish("a", b"3")
    harness.pass_time(SECOND)
    assert got(client) == "b/c2"


def test_thousands_of_topics_are_let_go_in_pieces_and_the_timer_takes_turns() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client)
    names = [f"t/{number}" for number in range(3 * conflated.AT_ONCE)]
    for payload in (b"1", b"2"):
        for name in names:
            harness.publish(name, payload)
    assert len(client.take()) == len(names)
    harness.pass_time(SECOND)
    assert len(client.take()) == conflated.AT_ONCE
    harness.pass_time(0.001)
    harness.pass_time(0.001)
    assert len(client.take()) == 2 * conflated.AT_ONCE
    for name in names:
        harness.publish(name, b"3")
    client.send(Unsubscribe(3, ["#"]))
    assert len(client.take()) == len(names) + 1
    assert is_empty(harness)


def test_the_timer_may_run_while_topics_are_let_go() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client)
    for number in range(2 * conflated.AT_ONCE):
        harness.publish(f"t/{number}", b"1")
        if number:
            harness.publish(f"t/{number}", b"2")
    filters = [*(f"none/{number}" for number in range(200)), "t/0", "#"]
    session, conflation = harness.session(), harness.broker.conflation
    pieces = conflation.release(session, filters, harness.instant)
    next(pieces)
    while conflation.topics > conflated.AT_ONCE:
        pieces.send(harness.instant)
    harness.pass_time(SECOND)
    with suppress(StopIteration):
        while True:
            pieces.send(harness.instant)
    harness.settle()
    assert len(client.take()) == 4 * conflated.AT_ONCE - 1
    harness.pass_time(SECOND)
    harness.pass_time(SECOND)
    assert is_empty(harness)


def test_a_message_that_came_at_once_moves_its_topics_time() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, "1000", "#")
    subscribe(client, None, "a", where="payload.now")
    harness.publish("a", b"1")
    harness.pass_time(0.9)
    harness.publish("a", b'{"now":true}')
    harness.publish("a", b"2")
    harness.pass_time(0.9)
    assert got(client) == 'a1 a{"now":true}'
    harness.pass_time(0.2)
    assert got(client) == "a2"


def test_topics_beyond_the_bounds_are_not_held_and_counted() -> None:
    bounds = (
        BrokerSettings(maximum_conflated_topics=1),
        BrokerSettings(maximum_conflated_topics_total=1),
    )
    for settings in bounds:
        harness = Harness(settings)
        client = harness.connect()
        subscribe(client)
        for topic in ("a", "b"):
            harness.publish(topic, b"1")
            harness.publish(topic, b"2")
        assert got(client) == "a1 b1 b2"
        assert values(harness) == {"topics": 1, "superseded": 0, "not_held": 2}


def test_bytes_beyond_the_bound_are_not_held_and_counted() -> None:
    harness = Harness()
    harness.broker.queue_memory.maximum_bytes = 16 * 2_000
    client = harness.connect()
    subscribe(client)
    harness.publish("a", b"1")
    harness.publish("a", b"2" * 2_000)
    harness.publish("b", b"1")
    harness.publish("b", b"2")
    assert got(client) == "a1 b1 b2", "one client has a quarter of a quarter"
    harness.publish("a", b"3")
    harness.publish("b", b"3")
    assert got(client) == "b3"
    assert values(harness)["not_held"] == 2, "and then there was room for b"
    harness.pass_time(SECOND)
    assert got(client) == "a3"


def test_memory_that_fills_meanwhile_lets_the_newest_through() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client)
    harness.publish("a", b"1")
    memory = harness.broker.queue_memory
    memory.maximum_bytes = memory.bytes
    harness.publish("a", b"2")
    assert got(client) == "a1 a2"
    assert values(harness)["not_held"] == 1


def test_a_client_that_does_not_read_gets_the_newest_when_it_does() -> None:
    harness = Harness(BrokerSettings(maximum_inflight=1))
    client = harness.connect()
    subscribe(client, "1000", qos=1)
    harness.publish("a", b"1", qos=1)
    harness.publish("b", b"1", qos=1)  # waits for the window
    (first,) = client.take()
    for number in range(2, 6):
        harness.publish("b", b"%d" % number, qos=1)
        harness.publish("c", b"%d" % number, qos=1)
        harness.pass_time(SECOND)
    assert client.take() == []
    assert isinstance(first, Publish)
    client.send(PubAck(first.packet_id or 0))
    assert got(client) == "b1"
    harness.pass_time(conflated.RETRY)
    harness.pass_time(conflated.RETRY)
    harness.pass_time(conflated.RETRY)
    assert sorted(f"{got(client)} {got(client)}".split()) == ["b5", "c5"]


def test_what_expires_while_it_is_held_is_not_sent() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, "10000")
    harness.publish("a", b"1")
    message = Message("a", b"2", arrived=harness.now, received_at=harness.wall)
    message.set_properties(Properties(message_expiry_interval=5))
    harness.broker.publish(message, harness.instant)
    harness.pass_time(11)
    assert got(client) == "a1"
    assert harness.counters.count("publish/messages/expired") == 1


def test_what_may_be_read_no_more_is_not_sent() -> None:
    harness = Harness()
    policy = AccessPolicy(parse("user u\ntopic read #\n"))
    harness.broker.listeners = only(policy)
    complete(access.apply(harness.broker, [policy], 0.0))
    client = harness.connect(username="u", info=ConnectionInfo(access=policy))
    subscribe(client)
    for topic in ("a", "b"):
        harness.publish(topic, b"1")
        harness.publish(topic, b"2")
    assert got(client) == "a1 b1"
    policy.replace(parse("user u\ntopic read b\n"))
    complete(access.apply(harness.broker, [policy], 0.0))
    harness.pass_time(SECOND)
    assert got(client) == "b2"
    assert harness.counters.count("tidegate/access/withheld") == 1


def test_a_session_that_is_away_is_owed_the_newest_of_each_time() -> None:
    harness = Harness()
    client = harness.persistent()
    subscribe(client, qos=1)
    harness.publish("a", b"1", qos=1)
    assert got(client) == "a1"
    client.drop()
    for number in range(2, 8):
        harness.publish("a", b"%d" % number, qos=1)
        harness.publish("z", b"%d" % number)  # nobody is owed that
        harness.pass_time(0.6)
    harness.pass_time(SECOND)
    assert got(harness.persistent()) == "a3 a5 a7"
    assert values(harness)["superseded"] == 3


def test_a_session_and_its_end_leave_nothing_behind() -> None:
    harness = Harness()
    client = harness.persistent()
    subscribe(client, qos=1)
    for payload in (b"1", b"2"):
        harness.publish("a", payload, qos=1)
        harness.publish("b", payload)
    client.drop()
    harness.connect(clean_start=True).drop()
    assert is_empty(harness)
    assert not harness.broker.conflation.members
    harness.pass_time(SECOND)


def test_another_connection_of_the_session_gets_what_is_held() -> None:
    harness = Harness()
    client = harness.persistent()
    subscribe(client, qos=1)
    for payload in (b"1", b"2"):
        harness.publish("a", payload, qos=1)
        harness.publish("b", payload)
    assert got(client) == "a1 b1"
    again = harness.persistent()  # a take-over
    harness.pass_time(SECOND)
    assert got(again) == "a2 b2"


def test_a_crash_loses_what_is_held_and_the_next_message_comes() -> None:
    harness = DurableHarness()
    client = harness.persistent()
    subscribe(client, qos=1)
    harness.publish("a", b"1", qos=1)
    harness.publish("a", b"2", qos=1)
    assert got(client) == "a1"
    harness.crash()
    client = harness.persistent()
    harness.publish("a", b"3", qos=1)
    harness.pass_time(SECOND)
    assert got(client) == "a3"


def test_messages_of_every_qos_are_held_and_keep_it() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, qos=2)
    for qos in (0, 1, 2):
        harness.publish(f"q{qos}", b"1", qos=qos, retain=True)
        harness.publish(f"q{qos}", b"2", qos=qos, retain=True)
    sent = [each for each in client.take() if isinstance(each, Publish)]
    harness.pass_time(SECOND)
    sent += [each for each in client.take() if isinstance(each, Publish)]
    assert [(each.topic, each.qos, each.payload) for each in sent] == [
        (f"q{qos}", qos, payload) for payload in (b"1", b"2") for qos in (0, 1, 2)
    ]


def test_retained_messages_come_at_once_and_begin_no_time() -> None:
    harness = Harness()
    harness.publish("a", b"0", retain=True)
    client = harness.connect()
    subscribe(client)
    assert got(client) == "a0"
    harness.publish("a", b"1")
    assert got(client) == "a1"


def test_a_restart_knows_the_subscription_and_a_stop_keeps_what_is_held() -> None:
    for deliver in (None, "n=2,ms=50"):
        harness = DurableHarness()
        client = harness.persistent()
        subscribe(client, "60000", qos=1, deliver=deliver)
        harness.publish("a", b"1", qos=1)
        harness.publish("a", b"2", qos=1)
        client.drop()
        harness.broker.conflation.flush(harness.now)
        harness.settle()
        harness.crash()
        (number,) = harness.broker.router.numbers(harness.session())
        policy = harness.broker.router.subscription(number).delivery
        assert policy is not None
        assert (policy.every, policy.own, policy.count) == (60.0, bool(deliver), 1 + bool(deliver))
        client = harness.persistent()
        assert got(client) == "a1 a2"
        harness.publish("a", b"3", qos=1)
        harness.publish("a", b"4", qos=1)
        harness.pass_time(1)
        assert got(client) == "a3"


def test_with_a_delivery_policy_what_is_sent_is_held_by_that() -> None:
    harness = Harness()
    client = harness.connect()
    subscribe(client, "1000", deliver="n=2,ms=200")
    harness.publish("a", b"1")
    assert got(client) == ""
    harness.publish("a", b"2")
    harness.publish("b", b"1")
    assert got(client) == "a1 b1"


class Naive:
    """Remembers all that was published and came, and says what must have come by now."""

    def __init__(self, every: float) -> None:
        self.every = every
        self.late = min(conflated.STEP, every * conflated.LATE) + TICK
        self.published: dict[str, list[tuple[float, int]]] = {}
        self.came: dict[str, list[tuple[float, int]]] = {}

    def note(self, now: float, came: str) -> None:
        for each in came.split():
            topic, number = each[0], int(each[1:])
            assert self.published[topic][-1][1] == number, "only the newest comes"
            known = self.came.setdefault(topic, [])
            assert not known or known[-1][0] + self.every <= now, "not twice in the time"
            known.append((now, number))

    def check(self, now: float) -> None:
        for topic, published in self.published.items():
            known, (arrived, newest) = self.came[topic], published[-1]
            if known[-1][1] != newest:
                assert now <= max(arrived, known[-1][0] + self.every) + self.late


TICK = 0.02
EVENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.sampled_from((0, 1, 4, 11, 30))),
    max_size=40,
)


@given(EVENTS, st.sampled_from((0.01, 0.1, 0.5)))
def test_whatever_is_published_a_naive_observer_sees_the_newest_in_time(
    events: list[tuple[str, bool, int]], every: float
) -> None:
    harness, naive = Harness(), Naive(every)
    client, plain = harness.connect(), harness.connect("plain")
    subscribe(client, str(round(1000 * every)), qos=1)
    plain.subscribe("#", 1)
    for number, (topic, acknowledged, ticks) in enumerate(events):
        harness.publish(topic, b"%d" % number, qos=int(acknowledged))
        naive.published.setdefault(topic, []).append((harness.now, number))
        naive.note(harness.now, got(client))
        for _ in range(ticks):
            harness.pass_time(TICK)
            naive.note(harness.now, got(client))
            naive.check(harness.now)
    for _ in range(2 * round((every + naive.late) / TICK) + 4):
        harness.pass_time(TICK)
        naive.note(harness.now, got(client))
    for topic, published in naive.published.items():
        assert naive.came[topic][0][1] == published[0][1]
        assert naive.came[topic][-1][1] == published[-1][1]
    assert len(got(plain).split()) == len(events)
    assert is_empty(harness)
