import json

from hypothesis import given
from hypothesis import strategies as st

from tui.state import MAX_ALARMS, MAX_LOG_LINES, GatewayState

NAMES = st.sampled_from(
    ["uptime", "version", "tidegate/log", "tidegate/log/recent", "tidegate/alarm/a", "x"]
)


@given(st.lists(st.tuples(NAMES, st.binary(max_size=40), st.booleans())))
def test_any_message_can_be_taken(messages: list[tuple[str, bytes, bool]]) -> None:
    state = GatewayState()
    for name, payload, retained in messages:
        state.apply(f"$SYS/broker/{name}", payload, 5.0, retained=retained)
        state.apply(name, payload, 5.0, retained=retained)


def test_alarms() -> None:
    state = GatewayState()
    for number in range(MAX_ALARMS + 2):
        state.apply(f"$SYS/broker/tidegate/alarm/a{number}", b'{"raised": 1000, "text": "t"}', 1.0)
    assert state.not_stored == 2
    assert state.alarms["a0"].raised == 1.0
    state.apply("$SYS/broker/tidegate/alarm/a0", b"", 1.0)
    state.apply("$SYS/broker/tidegate/alarm/plain", b"words", 1.0)
    assert "a0" not in state.alarms
    assert state.alarms["plain"].text == "words"


def test_the_log_is_bounded_and_in_the_order_of_time() -> None:
    state = GatewayState()
    state.note("info", "connected", 50.0)
    recent = [
        {"time": 1_000 * n, "level": "INFO", "logger": "g", "message": str(n)} for n in (1, 60)
    ]
    state.apply("$SYS/broker/tidegate/log/recent", json.dumps(recent).encode(), 61.0, retained=True)
    state.apply("$SYS/broker/tidegate/log/recent", json.dumps(recent).encode(), 61.0, retained=True)
    state.apply("$SYS/broker/tidegate/log/recent", json.dumps(recent).encode(), 61.0)
    assert [each.message for each in state.log] == ["1", "connected", "60"]
    for _ in range(MAX_LOG_LINES + 5):
        state.apply("$SYS/broker/tidegate/log", b"no JSON", 70.0)
    assert len(state.log) == MAX_LOG_LINES


def test_a_new_connection_tells_everything_anew() -> None:
    state = GatewayState()
    state.apply("$SYS/broker/uptime", b"5 seconds", 1.0)
    state.apply("$SYS/broker/version", b"v", 1.0)
    state.begin(9.0)
    assert (state.uptime, state.figures.word("version"), state.since) == (None, "", 9.0)


def test_the_first_questions_of_a_gateway_are_no_traffic() -> None:
    state = GatewayState()

    def tell(name: str, value: object) -> None:
        state.apply(f"$SYS/broker/{name}", str(value).encode(), now)

    for second in range(12):
        now = 100.0 + second
        if second >= 4:
            tell("tidegate/queries/answered", 2 * (second - 3))
        tell("uptime", f"{second} seconds")
        tell("publish/messages/received", 2 * max(0, second - 3))
        assert state.incoming() in (None, 0.0)
