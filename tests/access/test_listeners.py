"""The rights at listeners, also where it is not known which of them counts."""

from gateway.access.access import EVERYTHING, AccessPolicy
from gateway.access.acl_file import parse
from gateway.access.listeners import UNKNOWN, ListenerRights, Listeners, Origin
from gateway.access.rule import READ, WRITE

WIDE = AccessPolicy(parse("user anna\ntopic a/#\ntopic read b\n"))
NARROW = AccessPolicy(parse("user anna\ntopic read a/1\ntopic write b\ntopic read c\n"))
DOOR = Origin("door", local=False, proven=True)
YARD = Origin("yard", local=True, proven=False)
BOTH = Listeners(
    {"door": ListenerRights(WIDE, "anna".__eq__, proves=True), "yard": ListenerRights(NARROW)}
)


def test_a_listener_that_is_there_has_its_own_rules() -> None:
    assert BOTH.origin(DOOR) == DOOR
    access = BOTH.access("anna", "c", DOOR)
    assert access is WIDE.access("anna", "c", local=False, proven=True)
    assert BOTH.access("anna", "c", YARD).rights("c") == READ


def test_without_one_what_all_allow_is_allowed() -> None:
    gone = BOTH.origin(Origin("cellar", local=True, proven=False))
    assert gone == Origin(None, local=False, proven=False)
    access = BOTH.access("anna", "c", gone)
    assert BOTH.access("anna", "c", gone) is access
    assert [access.rights(topic) for topic in ("a/1", "a/2", "b", "c")] == [READ, 0, 0, 0]
    assert access.restricted
    assert access.weight == 2
    assert [access.may_subscribe(each) for each in ("a/#", "a/2", "c")] == [True, False, False]
    NARROW.replace(parse("user anna\ntopic #\n"))
    assert BOTH.access("anna", "c", gone).rights("a/2") == READ | WRITE
    NARROW.replace(parse("user anna\ntopic read a/1\ntopic write b\ntopic read c\n"))


def test_a_single_policy_is_what_all_allow() -> None:
    one = Listeners({"door": ListenerRights(WIDE), "gate": ListenerRights(WIDE)})
    assert one.access("anna", "c", UNKNOWN).policy is WIDE
    assert Listeners().access("anna", "c", UNKNOWN).rights("x") == EVERYTHING.rights("x")


def test_a_name_of_which_nothing_is_known_counts_as_proven_where_names_are() -> None:
    assert BOTH.origin(UNKNOWN).proven
    assert not Listeners({"yard": ListenerRights(NARROW)}).origin(UNKNOWN).proven


def test_who_is_a_user() -> None:
    assert BOTH.has_user("anna", DOOR)
    assert not BOTH.has_user("ben", DOOR)
    assert BOTH.has_user(None, DOOR)
    assert BOTH.has_user("ben", YARD)  # who claimed the name
    proven = Origin("yard", local=False, proven=True)  # by a certificate
    assert BOTH.has_user("ben", proven)
    gone = Origin(None, local=False, proven=True)
    assert BOTH.has_user("anna", gone)
    assert not BOTH.has_user("ben", gone)
    assert Listeners({"yard": ListenerRights(NARROW)}).has_user("ben", gone)


def test_the_socket_for_commands_says_nothing_of_other_listeners() -> None:
    here = Origin("socket", local=True, proven=False)
    listeners = Listeners({"yard": ListenerRights(NARROW)}, {"socket": ListenerRights(WIDE)})
    assert listeners.origin(here) == here
    assert listeners.access(None, "c", here) is WIDE.access(None, "c", local=True, proven=False)
    gone = Listeners({"yard": ListenerRights(NARROW)}).origin(here)
    narrow = NARROW.access(None, "c", local=False, proven=False)
    assert listeners.access(None, "c", gone) is narrow
