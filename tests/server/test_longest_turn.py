from gateway.server.turn import HALF, LongestTurn
from tests.support.broker.broker_harness import Harness

PUBLISH = 0x32


def test_the_longest_turn_of_the_last_minute_is_told_with_whom_it_served() -> None:
    client = Harness().connect("pump").client
    longest = LongestTurn()
    now = 1_000.0
    assert longest.of_last_minute(now) == (0.0, "")
    longest.note(0.0124, client, PUBLISH)
    longest.note(0.0567, None, 0)
    reported = 56.7, "timers and the gateway's own"
    assert longest.of_last_minute(now + 1) == reported
    assert longest.of_last_minute(now + HALF) == reported
    longest.note(0.0124, client, PUBLISH)
    assert longest.of_last_minute(now + HALF + 1) == reported
    assert longest.of_last_minute(now + 2 * HALF) == (12.4, "client 'pump', PUBLISH")
    assert longest.of_last_minute(now + 5 * HALF) == (0.0, "")


def test_a_client_before_its_connect_is_told_of_by_its_address() -> None:
    longest = LongestTurn()
    longest.note(0.05, Harness().open().client, 0)
    assert longest.of_last_minute(0.0) == (50.0, "192.0.2.7:40000")
