"""The recorder asks the rules first and records what they did not refuse."""

from pathlib import Path

from gateway.app.history import Recorder
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.history.history import History
from gateway.storage.history.reader import open_history
from gateway.storage.history.row import Numbered, RuleResult
from gateway.uplink.rules.rule import Rule
from gateway.uplink.rules.rules import RuleSet
from gateway.where.rule import compile_rule
from tests.support.disk.storage import Store, bounded, open_store

EPOCH = "00a1b2c3d4"


async def recorder(store: Store, *rules: Rule) -> Recorder:
    history = History(store.database, store.writer, store.counters, 3600, 1 << 20)
    await history.begin(EPOCH, 1, ())
    rule_set = RuleSet(rules, store.outbox, store.counters, EPOCH) if rules else None
    return Recorder(history, rule_set)


async def recorded(store: Store) -> list[tuple[str, tuple[Numbered, ...]]]:
    await store.settle()
    with open_history(store.database.path.parent) as reader:
        assert reader is not None
        return [(row.message.topic, row.numbers) for row in reader.since(0)]


async def test_without_rules_everything_is_recorded(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    recording = await recorder(store)
    assert recording.topic_filters == ["#"]
    assert recording.receive(Message("a", received_at=1), ["#"]) == ReasonCode.SUCCESS
    assert await recorded(store) == [("a", ())]
    await store.close()


async def test_what_the_rules_said_is_recorded_with_the_message(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    rules = [
        Rule("s/#", compile_rule("qos = 1")),
        Rule("s/+", compile_rule("CHANGED(qos) AND a")),
        Rule("#", None, "all"),
        Rule("$SYS/x"),
    ]
    recording = await recorder(store, *rules)
    assert recording.topic_filters == ["s/#", "s/+", "$SYS/x", "#"]
    for topic, filters in (("s/1", ["s/#", "s/+", "#"]), ("t", ["#"]), ("$SYS/x", ["$SYS/x"])):
        recording.receive(Message(topic, received_at=1), filters)
    results = (RuleResult(0, 0, False), RuleResult(1, 0, None))
    taken = RuleResult(2, 0, True)
    assert await recorded(store) == [
        ("s/1", (Numbered("main", 1, results), Numbered("all", 1, (taken,)))),
        ("t", (Numbered("all", 2, (taken,)),)),
    ]
    assert store.outbox.rows == 3
    await store.close()


async def test_what_the_rules_refuse_is_not_recorded(tmp_path: Path) -> None:
    store = await open_store(tmp_path, settings=bounded(maximum_messages=0))
    recording = await recorder(store, Rule("s/#"))
    code = recording.receive(Message("s/1", b"", 1, received_at=1), ["s/#", "#"])
    assert code == ReasonCode.QUOTA_EXCEEDED
    assert recording.receive(Message("t", received_at=1), ["#"]) == ReasonCode.SUCCESS
    assert await recorded(store) == [("t", ())]
    await store.close()
