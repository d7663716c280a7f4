import gc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.access import (
    CACHED_PATTERNS,
    EVERYTHING,
    OPEN,
    Access,
    AccessPolicy,
    Patterns,
    Role,
)
from gateway.access.acl_file import parse
from gateway.access.rule import READ, WRITE, Rule, covers, overlaps
from gateway.access.topics import LOG
from gateway.mqtt.topics import topic_matches
from tests.support.naive.acl import CLIENTS, USERS, Who, allows, random_acl, random_topic
from tests.support.naive.matcher import matches
from tests.support.table import table

BOTH = READ | WRITE
UPLINK = "$CONTROL/tidegate/uplink"


def access(
    acl: str | None, username: str | None = None, client_id: str = "c", **how: bool
) -> Access:
    policy = AccessPolicy(None if acl is None else parse(acl), operators=["olga"])
    how = {"local": False, "proven": True} | how
    return policy.access(username, client_id, local=how["local"], proven=how["proven"])


@given(st.integers(0, 2**32))
def test_rights_are_those_of_a_naive_reading(seed: int) -> None:
    random = Random(seed)
    acl = random_acl(random)
    policy = AccessPolicy(parse(acl))
    for _ in range(20):
        who = Who(random.choice(USERS), random.choice(CLIENTS))
        topic = random_topic(random)
        found = policy.access(who.username, who.client_id, local=False, proven=True).rights(topic)
        assert bool(found & READ) == allows(acl, who, topic, "read"), (acl, who, topic)
        may_write = allows(acl, who, topic, "write") and not topic.startswith("$")
        assert bool(found & WRITE) == may_write, (acl, who, topic)


TABLE = """\
topic read open/#
user anna
topic readwrite a/#
topic deny a/secret/#
topic write $CONTROL/tidegate/#
topic read $SYS/#
user eve
topic deny $CONTROL/#
pattern write dev/%c/up
pattern deny a/#
pattern read $CONTROL/#
pattern readwrite u/%u
"""

RIGHTS = [
    (None, "open/x", READ),
    (None, "a/x", 0),
    (None, "dev/c/up", WRITE),
    (None, "dev/d/up", 0),
    (None, "u/%u", 0),
    (None, "$SYS/broker/uptime", 0),
    ("anna", "open/x", 0),  # rules before the first `user` are not for users
    ("anna", "a/x", BOTH),  # whatever patterns deny
    ("anna", "a/secret/x", 0),
    ("anna", "u/anna", BOTH),
    ("anna", "$SYS/broker/uptime", READ),
    ("anna", "$SYS/a", READ),
    ("anna", UPLINK, WRITE),
    ("anna", LOG, READ),
    ("nobody", UPLINK, 0),  # no pattern opens it
    ("nobody", LOG, 0),
    ("olga", UPLINK, BOTH),
    ("olga", LOG, READ),
    ("olga", "a/x", 0),
    ("eve", UPLINK, 0),
]


def test_rights_by_a_table() -> None:
    found = [(user, topic, access(TABLE, user).rights(topic)) for user, topic, _ in RIGHTS]
    assert found == RIGHTS


GUARDED = [  # rules, user, local, proven, rights on UPLINK
    (None, None, False, False, 0),
    (None, None, True, False, BOTH),
    (None, "anna", False, True, 0),
    (None, "anna", True, True, BOTH),
    (None, "olga", False, True, BOTH),
    (None, "olga", False, False, 0),  # anybody can say that
    (TABLE, None, True, False, 0),  # rules decide where there are any
    (TABLE, "anna", False, False, 0),
    (TABLE, "anna", True, False, WRITE),
    (TABLE, "olga", True, False, BOTH),
    (f"topic write {UPLINK}", None, False, False, 0),
    (f"topic write {UPLINK}", None, True, False, WRITE),
]


def test_commands_are_for_those_of_whom_it_is_certain() -> None:
    found = [
        (acl, user, local, proven, access(acl, user, local=local, proven=proven).rights(UPLINK))
        for acl, user, local, proven, _ in GUARDED
    ]
    assert found == GUARDED
    for acl, user, local, proven, rights in GUARDED:
        who = access(acl, user, local=local, proven=proven)
        assert who.may_subscribe("$CONTROL/tidegate/#") == bool(rights & READ)
        assert who.may_subscribe("$CONTROL/#") == bool(rights & READ)
        assert bool(who.rights(LOG)) == who.may_subscribe(LOG)


OWN = "$CONTROL/tidegate/channel/jobs/"

OF_CHANNELS = [
    (OWN + "touch", True),
    (OWN + "requeue", True),
    (OWN + "empty", False),
    ("$CONTROL/tidegate/channel/touch", False),
    ("$CONTROL/tidegate/channel/a/b/touch", False),
    (OWN + "touch/x", False),
]


@pytest.mark.parametrize("acl", [None, TABLE])
@pytest.mark.parametrize(("topic", "open_"), OF_CHANNELS)
def test_consumers_need_no_right_for_their_own_messages(
    acl: str | None, topic: str, open_: bool
) -> None:
    assert access(acl, "nobody").rights(topic) == (WRITE if open_ else 0)


def test_without_rules_all_else_is_open() -> None:
    stranger = access(None, "anna")
    assert not stranger.restricted
    assert stranger.rights("a/b") == BOTH
    assert stranger.rights("$SYS/broker/uptime") == READ
    assert stranger.may_subscribe("#")
    assert stranger.may_subscribe("$SYS/#")
    assert not stranger.may_subscribe(LOG)
    assert EVERYTHING.rights(LOG) == READ


SUBSCRIPTIONS = [
    (None, "open/#", True),
    (None, "+/x", True),
    (None, "#", True),
    (None, "closed/#", False),
    (None, "dev/c/up", False),  # may be written alone
    (None, "$SYS/#", False),
    ("anna", "a/#", True),
    ("anna", "a/secret/#", False),
    ("anna", "a/secret/+/x", False),
    ("anna", "$SYS/#", True),
    ("anna", f"{LOG}/#", True),
    ("nobody", f"{LOG}/#", False),
]


def test_what_can_never_be_read_is_not_subscribed_to() -> None:
    found = [
        (user, each, access(TABLE, user).may_subscribe(each)) for user, each, _ in SUBSCRIPTIONS
    ]
    assert found == SUBSCRIPTIONS


@given(st.integers(0, 2**32))
def test_a_refused_subscription_would_get_nothing(seed: int) -> None:
    random = Random(seed)
    acl = random_acl(random)
    who = access(acl, random.choice(USERS), random.choice(CLIENTS))
    topic_filter = "/".join(random.choices(("+", "a", "anna", "c1", "$x"), k=random.randint(1, 2)))
    topic_filter += random.choice(("", "/#"))
    if not who.may_subscribe(topic_filter):
        topics = {random_topic(random) for _ in range(200)}
        readable = {each for each in topics if who.rights(each) & READ}
        assert not {each for each in readable if matches(topic_filter, each)}, acl


filters = st.lists(st.sampled_from(["a", "b", "$x", "+", ""]), min_size=1, max_size=3).flatmap(
    lambda levels: st.sampled_from([levels, [*levels, "#"]]).map("/".join)
)
topics = st.lists(st.sampled_from(["a", "b", "$x", ""]), min_size=1, max_size=4).map("/".join)


@given(filters.filter(bool), filters.filter(bool), st.lists(topics.filter(bool), max_size=30))
def test_filters_are_compared_as_their_topics_are(one: str, other: str, tried: list[str]) -> None:
    mine = {topic for topic in tried if matches(one, topic)}
    theirs = {topic for topic in tried if matches(other, topic)}
    assert overlaps(one, other) or not mine & theirs
    assert overlaps(one, other) == overlaps(other, one)
    assert theirs <= mine or not covers(one, other)
    assert covers(one, one)
    assert not covers(one, other) or overlaps(one, other)


def test_filters_overlap_by_example() -> None:
    assert [overlaps("a/#", each) for each in ("a", "a/b", "+", "b", "#", "$a")] == [
        *(True, True, True, False, True, False)
    ]
    assert [covers("a/+", each) for each in ("a/b", "a/+", "a/#", "a", "a/b/c", "$a/b")] == [
        *(True, True, False, False, False, False)
    ]
    assert covers("a/#", "a")
    assert not covers("+", "$a")


def test_roles_are_rules_of_those_they_name() -> None:
    rules = (Rule("dev/%u/#", BOTH, "role x: readwrite dev/%u/#", pattern=True),)
    roles = [
        Role(lambda name: name.startswith("dev-"), anonymous=False, rules=rules),
        Role(lambda _: False, anonymous=True, rules=(Rule("hall", READ, "role y: read hall"),)),
    ]
    policy = AccessPolicy(parse("user dev-1\ntopic deny dev/dev-1/secret\n"), roles)

    def rights(username: str | None, topic: str) -> int:
        return policy.access(username, "c", local=False, proven=True).rights(topic)

    assert rights("dev-1", "dev/dev-1/x") == BOTH
    assert rights("dev-1", "dev/dev-1/secret") == 0
    assert rights("dev-1", "dev/dev-2/x") == 0
    assert rights("dev-+", "dev/dev-2/x") == 0  # a name that would match others'
    assert rights("other", "dev/other/x") == 0
    assert (rights(None, "hall"), rights("dev-1", "hall")) == (READ, 0)


def test_who_may_do_the_same_has_the_same_access() -> None:
    first, second = (OPEN.access(name, name, local=True, proven=False) for name in ("anna", "bob"))
    assert first is second
    policy = AccessPolicy(parse("user anna\ntopic a\n"))
    anna = [policy.access("anna", each, local=True, proven=True) for each in ("1", "2")]
    assert anna[0] is anna[1] is not policy.access("bob", "1", local=True, proven=True)
    policy.replace(parse("pattern read %c\n"))
    anna = [policy.access("anna", each, local=True, proven=True) for each in ("1", "2")]
    assert anna[0] is not anna[1]
    del anna
    gc.collect()
    assert not policy._known


def test_many_patterns_say_what_few_do() -> None:
    many = "".join(f"pattern read {number}/%c\n" for number in range(CACHED_PATTERNS + 1))
    for text, number in ((many, CACHED_PATTERNS), ("pattern read 0/%c\n", 0)):
        policy = AccessPolicy(parse(text))
        one = policy.access(None, "one", local=False, proven=False)
        for _ in range(2):
            assert one.rights(f"{number}/one") == READ
            assert one.rights(f"{number}/two") == 0


def test_it_can_be_explained() -> None:
    anna = access(TABLE, "anna")
    assert anna.explain("a/secret/x") == [
        "line 4: topic deny a/secret/#",
        "line 3: topic readwrite a/#",
        "line 10: pattern deny a/#",
    ]
    assert anna.explain("b") == []
    assert access(TABLE, "nobody").explain(UPLINK) == []


def test_who_may_write_a_topic_may_write_it_later_and_no_other() -> None:
    ada = access("topic write a/#\ntopic read b")
    for topic, expected in (("a/x", WRITE), ("b", 0), ("c", 0), ("$SYS/x", 0), (UPLINK, 0)):
        assert ada.rights(f"$delay/5/{topic}") == expected, topic
    assert access(None).rights("$delay/5/a") == WRITE
    assert access(None).rights("$delay/5/" * 10_000 + "a") == 0


MOUNTED = """\
user anna
topic readwrite dev/c/open/#
topic read other/#
pattern write dev/%c/up
"""


@table(
    ("mount_point", "username", "acl", "topic", "expected"),
    [
        ("dev/", None, None, "dev/x", BOTH),
        ("dev/", None, None, "dev//", BOTH),
        ("dev/", None, None, "dev/$SYS/x", BOTH),
        ("dev/", None, None, "dev", 0),
        ("dev/", None, None, "dev/", 0),
        ("dev/", None, None, "devil/x", 0),
        ("dev/", None, None, "x", 0),
        ("dev/", None, None, "$SYS/broker/uptime", 0),
        ("dev/", "olga", None, UPLINK, 0),
        ("dev/", None, None, "$delay/5/dev/x", WRITE),
        ("dev/", None, None, "$delay/5/x", 0),
        ("dev/", None, None, OWN + "touch", WRITE),
        ("dev/", None, MOUNTED, OWN + "requeue", WRITE),
        ("dev/", "olga", None, OWN + "pause", 0),
        ("dev", None, None, "devil", BOTH),
        ("dev/%c/", None, None, "dev/c/x", BOTH),
        ("dev/%c/", None, None, "dev/d/x", 0),
        ("%u/%c/", "anna", None, "anna/c/x", BOTH),
        ("%u/%c/", "bob", None, "anna/c/x", 0),
        ("%u/", "%c", None, "%c/x", BOTH),
        ("%u/", "a/b", None, "a/b/x", 0),
        ("%u/", "+", None, "+/x", 0),
        ("%u/", None, None, "/x", 0),
        ("%u/", "$SYS", None, "$SYS/x", 0),
        ("dev/c/", "anna", MOUNTED, "dev/c/open/1", BOTH),
        ("dev/c/", "anna", MOUNTED, "dev/c/up", WRITE),
        ("dev/c/", "anna", MOUNTED, "dev/c/down", 0),
        ("dev/c/", "anna", MOUNTED, "other/1", 0),
    ],
)
def test_rights_with_a_mount_point(
    mount_point: str, username: str | None, acl: str | None, topic: str, expected: int
) -> None:
    policy = AccessPolicy(
        None if acl is None else parse(acl), operators=["olga"], mount_point=mount_point
    )
    client = policy.access(username, "c", local=True, proven=True)
    assert policy.restricted
    assert client.restricted
    assert client.rights(topic) == expected
    assert not client.may_subscribe("#")
    if not topic.startswith("$delay"):
        assert client.may_subscribe(topic) == bool(expected & READ)


def test_clients_of_one_mount_point_have_the_same_access() -> None:
    policy = AccessPolicy(mount_point="dev/")
    one, two = (policy.access(each, each, local=False, proven=True) for each in ("a", "b"))
    assert one is two
    policy.become(AccessPolicy(mount_point="%u/"))
    one, two = (policy.access(each, "c", local=False, proven=True) for each in ("a", "b"))
    assert (one.prefix, two.prefix) == ("a/", "b/")
    assert policy.access("a", "d", local=False, proven=True) is one


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
    patterns.match(name)
    if named.topic_filter and topic_matches(named.topic_filter, name):
        assert patterns.found == [pattern]


def test_what_is_the_same_for_all_is_found_once() -> None:
    patterns = Patterns([rule("a/#"), rule("a/b", WRITE), rule("c/%c"), rule("d", 0), rule("d")])
    for topic, granted in (("a/b", READ | WRITE), ("a", READ), ("x", 0), ("c/x", None), ("d", 0)):
        patterns.match(topic)
        assert patterns.granted == granted, topic
    assert len(patterns) == len(patterns.all()) == 5
