from hypothesis import given
from hypothesis import strategies as st

from gateway.access.patterns import Patterns
from gateway.access.rule import READ, WRITE, Rule
from gateway.mqtt.topics import topic_matches

LEVELS = st.lists(st.sampled_from(("a", "b", "$x", "+", "%c", "x%u", "")), min_size=1, max_size=4)
NAMES = st.text("ab/$", max_size=4)


def rule(topic_filter: str, grants: int = READ) -> Rule:
    return Rule(topic_filter, grants, "", pattern=True)


@given(LEVELS, st.booleans(), NAMES, NAMES, st.lists(st.sampled_from(("a", "b", "$x", "xa", ""))))
def test_what_matches_for_some_client_is_found(
    levels: list[str], tail: bool, client_id: str, username: str, topic: list[str]
) -> None:
    pattern = rule("/".join([*levels, "#"] if tail else levels))
    named = pattern.named(client_id, username)
    assert named is not None
    name = "/".join(topic) or "a"
    patterns = Patterns([pattern])
    patterns.look_at(name)
    if named.topic_filter and topic_matches(named.topic_filter, name):
        assert patterns.found == [pattern]


def test_what_is_the_same_for_all_is_found_once() -> None:
    patterns = Patterns([rule("a/#"), rule("a/b", WRITE), rule("c/%c"), rule("d", 0), rule("d")])
    for topic, granted in (("a/b", READ | WRITE), ("a", READ), ("x", 0), ("c/x", None), ("d", 0)):
        patterns.look_at(topic)
        assert patterns.granted == granted, topic
    assert len(patterns) == len(patterns.all()) == 5
