import pytest

from tui.uplink_order import PATIENCE, UplinkOrder


@pytest.mark.parametrize(
    ("word", "state", "done"),
    [
        ("pause", "paused", True),
        ("pause", "connected", False),
        ("pause", "", False),
        ("resume", "connected", True),
        ("resume", "disconnected", True),
        ("resume", "paused", False),
        ("resume", "", False),
    ],
)
def test_the_effect_is_what_the_gateway_tells(word: str, state: str, done: bool) -> None:
    order = UplinkOrder(word, given=100.0)
    order.look(state, 101.0)
    assert order.done is done
    assert bool(order.outcome) is done


def test_no_effect_in_time() -> None:
    order = UplinkOrder("pause", given=100.0)
    order.look("off", 100.0 + PATIENCE)
    assert not order.done
    assert order.outcome == "no effect after 5 s of pause: the uplink is off"


def test_a_refusal_and_a_lost_connection_end_it() -> None:
    refused = UplinkOrder("pause", given=100.0)
    refused.refused("Not authorized")
    refused.lost()
    refused.look("paused", 101.0)
    assert refused.outcome == "the gateway refused to pause the uplink: Not authorized"
    assert not refused.done
    lost = UplinkOrder("resume", given=100.0)
    lost.lost()
    assert lost.outcome == "the connection ended before the uplink was seen to resume"
