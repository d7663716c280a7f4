from tui.topics import MAX_TOPIC, Topics, TopicTree

ROW = {
    "topic": "sensors/a/t", "time": 90_000, "payload": '{"value":21.5,"unit":"°C"}', "size": 26,
    "publisher": "serial:a", "count": 7, "interval_seconds": 2.0, "rate": 0.5, "silent": True,
    "retained": True,
}  # fmt: skip


def test_a_message() -> None:
    topics = Topics()
    topics.hear("sensors/a", b'{"value":1}', 100.0)
    topics.hear("sensors/a", b'{"value":2}', 101.0)
    topic = topics.get("sensors/a")
    assert topic is not None
    assert (topic.numbers(), topic.age(103.0), topic.before) == ([1.0, 2.0], 2.0, b'{"value":1}')


def test_a_retained_message_is_as_old_as_it_says() -> None:
    topics = Topics()
    topics.hear("a", b'{"value":1,"time":50000}', 100.0, retained=True)
    topics.hear("b", b"1", 100.0, retained=True)
    first, second = topics.get("a"), topics.get("b")
    assert first
    assert second
    assert (first.age(100.0), second.age(100.0)) == (50.0, None)
    topics.hear("a", b"", 101.0, retained=True)
    assert topics.get("a") is None


def test_what_the_gateway_remembers() -> None:
    topics = Topics()
    topics.tell([ROW, {"topic": 5}, {}], ahead=10.0)
    topic = topics.get("sensors/a/t")
    assert topic is not None
    assert (topic.age(100.0), topic.rate, topic.interval, topic.silent) == (20.0, 0.5, 2.0, True)
    assert topic.numbers() == [21.5]
    topics.tell([{**ROW, "time": 91_000, "payload": None, "payload_base64": "/w=="}], ahead=10.0)
    assert topic.payload == b"\xff"
    topics.tell([{**ROW, "time": 92_000, "payload": None, "payload_base64": "?"}], ahead=10.0)
    assert topic.payload == b""


def test_bounds() -> None:
    topics = Topics(limit=2)
    for name in ("a", "b", "a", "c", "x" * (MAX_TOPIC + 1)):
        topics.hear(name, b"1", 1.0)
    assert [each.name for each in topics] == ["a", "c"]
    assert (topics.dropped, topics.refused) == (1, 1)
    topics.clear()
    assert len(topics) == 0


def test_the_tree() -> None:
    topics, tree = Topics(), TopicTree()
    for name in ("sensors/a/t", "sensors/a/h", "sensors/b", "sensors", "other"):
        topics.hear(name, b"1", 1.0)
    tree.make(1, sorted(topics, key=lambda each: each.name))
    closed = tree.visible(set(), None)
    assert [each.path for each in closed] == ["other", "sensors"]
    opened = tree.visible({"sensors", "sensors/a"}, None)
    assert [each.label for each in opened] == ["other", "sensors", "a", "h", "t", "b"]
    found = tree.visible(set(), frozenset({"sensors/a/h"}))
    assert [each.path for each in found] == ["sensors", "sensors/a", "sensors/a/h"]
    assert closed[1].rate() is None
    assert closed[1].updated() == 1.0
    assert (len(closed[1].below), closed[1].silent()) == (4, 0)
