import json

from bench.real_traffic.plan import LEAST, MOST, Plan, Subscriber, readings, text, topic

PLAN = Plan(16, 20, [Subscriber(), Subscriber(("a/+", "b/#"), "persistent away")])


def lines(plan: Plan, word: str) -> list[str]:
    return [line for line in plan.write().splitlines() if line.split(" ")[0] == word]


def test_readings_are_json_of_many_sizes_and_contents() -> None:
    texts = [text(reading) for reading in readings()]
    assert [json.loads("{" + written) for written in texts] == readings()
    assert min(map(len, texts)) < 16
    assert {LEAST <= len(written) <= MOST for written in texts} == {True}
    assert len(set(map(len, texts))) > 100


def test_a_large_reading_has_the_size_that_was_asked_for() -> None:
    assert [len(text(reading)) for reading in readings(3, 50_000, 50_000)] == [50_000] * 3


def test_topics_have_four_levels_and_belong_to_one_publisher() -> None:
    names = [topic(publisher, index) for publisher in range(50) for index in range(20)]
    assert len(set(names)) == 1_000
    assert {name.count("/") for name in names} == {3}


def test_half_go_through_their_topics_at_random_and_a_quarter_sends_each_property() -> None:
    publishers = lines(PLAN, "publisher")
    assert len(publishers) == 16
    for word, count in (("random", 8), ("type", 4), ("expiry", 4), ("random type", 0)):
        assert sum(word in line for line in publishers) == count
    assert sum("type random" in line for line in publishers) == 2


def test_each_message_of_a_fresh_plan_has_a_topic_of_its_own() -> None:
    assert all("fresh" in line for line in lines(Plan(4, 1, [], fresh=True), "publisher"))


def test_filters_follow_their_subscriber() -> None:
    assert PLAN.write().splitlines()[-5:] == [
        "subscriber ",
        "filter #",
        "subscriber persistent away",
        "filter a/+",
        "filter b/#",
    ]


def test_the_samples_that_a_where_takes_are_numbered() -> None:
    hot = Subscriber(where="payload.value > 90", condition=lambda reading: reading["value"] == 3)
    plan = Plan(1, 1, [hot], readings=[{"value": 3}, {"value": 4}, {"value": 3}])
    assert lines(plan, "where") == ["where payload.value > 90"]
    assert lines(plan, "takes") == ["takes 0 2"]
