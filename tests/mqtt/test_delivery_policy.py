import pytest

from gateway.mqtt.delivery_policy import EACH, OF_CLASS, DeliveryPolicy, PolicyError, read_policy

READ = {
    "each": (1, 1, 0.0),
    "n=10,ms=50,bytes=4096": (10, 4096, 0.05),
    "bytes=262144,ms=10000": (5, 262_144, 10.0),
    "n=1000": (1000, 65_536, 0.2),
    "ms=1": (5, 65_536, 0.001),
}
"""What a property asks for: messages, bytes and seconds."""

MISTAKES = {
    "": "''",
    "Each": "'Each'",
    "n=0": "'n=0': n is 1 to 1000",
    "n=1001": "'n=1001': n is 1 to 1000",
    "n=5,ms=10001": "'ms=10001': ms is 1 to 10000",
    "bytes=262145": "'bytes=262145': bytes is 1 to 262144",
    "n=5,n=6": "'n=6': allowed are",
    "n=5,": "'': allowed are",
    "n=5, ms=3": "' ms=3': allowed are",
    "n=-1": "'n=-1': allowed are",
    "n=1e3": "'n=1e3': allowed are",
    "n=٣": "'n=٣': allowed are",
    "count=5": "'count=5': allowed are",
    "x" * 1000: "'" + "x" * 40 + "'",
}
"""What cannot be read, and how the error begins."""


def test_a_property_is_read_term_by_term() -> None:
    assert read_policy(None) is None
    assert read_policy("each") is EACH
    for text, expected in READ.items():
        policy = read_policy(text)
        assert policy is not None
        assert (policy.count, policy.size, policy.delay) == expected, text


def test_what_is_wrong_names_the_term_and_what_is_allowed() -> None:
    for text, expected in MISTAKES.items():
        with pytest.raises(PolicyError) as raised:
            read_policy(text)
        assert str(raised.value).startswith(f"$deliver: {expected}"), text


def test_one_message_or_no_time_holds_nothing() -> None:
    assert not EACH.holds
    assert not DeliveryPolicy(1, 100, 1.0).holds
    assert not DeliveryPolicy(5, 100, 0.0).holds
    assert DeliveryPolicy(2, 100, 0.1).holds


def test_of_two_the_shorter_holds_no_longer_than_either() -> None:
    both = DeliveryPolicy(10, 100, 0.4).shorter(DeliveryPolicy(5, 1000, 1.0))
    assert (both.count, both.size, both.delay) == (5, 100, 0.4)
    assert both.step <= 0.1
    assert not both.shorter(EACH).holds


def test_a_time_for_the_newest_goes_with_any_policy() -> None:
    alone, with_policy = read_policy(None, "1000"), read_policy("n=2,ms=50", "250")
    assert alone is not None
    assert with_policy is not None
    assert (alone.every, alone.own, alone.holds) == (1.0, False, False)
    assert (with_policy.every, with_policy.own, with_policy.count) == (0.25, True, 2)
    for both in (alone.shorter(with_policy), with_policy.shorter(alone)):
        assert (both.every, both.own, both.count, both.delay) == (0.25, True, 2, 0.05)
    for each in (alone, with_policy):
        assert each.shorter(EACH).every == EACH.shorter(each).every == 0.0
        assert each.shorter(OF_CLASS).every == OF_CLASS.shorter(each).every == 0.0
    assert not alone.shorter(OF_CLASS).own
