"""The screen says what is true, above all when something is wrong: one test for each finding."""

import json

import pytest

from tests.support.silent_client import Bench
from tui.inbox import Arrival
from tui.line import MUTED
from tui.link import Acknowledged, Link, Phase, Subscribed
from tui.screens.topics import TopicsScreen

UPLINKS = {
    "tidegate__uplink__state": "disconnected",
    "tidegate__uplink__cloud__state": "connected",
    "tidegate__uplink__cloud__acknowledged": 100,
    "tidegate__uplink__cloud__waiting": 0,
    "tidegate__uplink__plant__state": "disconnected",
    "tidegate__uplink__plant__error": "10.0.0.7:1883: [Errno 111] Connection refused",
    "tidegate__uplink__plant__waiting": 4_912,
}


def test_no_rate_is_invented_while_retained_figures_trickle_in() -> None:
    bench = Bench()
    bench.tell(uptime="100 seconds")
    bench.round(101)
    bench.tell(publish__messages__received=1_000_000)  # retained, and late
    bench.round(102)
    bench.round(103)
    assert bench.session.state.incoming() in (None, 0.0)
    bench.round(104, publish__messages__received=1_000_008)
    bench.round(105)
    incoming = bench.session.state.incoming()
    assert incoming is not None
    assert incoming <= 8


def test_each_uplink_is_shown_as_itself() -> None:
    bench = Bench()
    bench.tell(**UPLINKS)
    bench.round(10)
    bench.round(11)
    bench.round(12, tidegate__uplink__cloud__acknowledged=103)
    for size in ((40, 12), (80, 24), (160, 50)):
        lines = bench.screen(*size).splitlines()
        cloud = next(each for each in lines if "● cloud" in each)
        plant = next(each for each in lines if "✕ plant" in each and "disconnected" in each)
        assert "/s" in cloud
        assert "4,912 wait" in plant or size == (40, 12)


def test_a_pause_asks_and_means_the_uplink_at_the_cursor() -> None:
    bench = Bench()
    bench.tell(**UPLINKS)
    bench.press("4")
    assert "pause cloud…" in bench.screen()
    bench.press("j")
    assert "pause plant…" in bench.screen()
    bench.press("p")
    asked = bench.screen()
    assert "Pause uplink plant?" in asked
    assert "restarts" in asked
    bench.press("n")
    assert bench.client.orders == []
    bench.press("p", "y")
    assert bench.client.orders == [("uplink/plant", "pause")]
    bench.tell(tidegate__uplink__plant__state="paused")
    assert "uplink plant is paused" in bench.screen()
    bench.pass_time(7)
    assert "resume plant…" in bench.screen()


def test_a_pause_without_effect_or_refused_is_told() -> None:
    bench = Bench()
    bench.tell(**UPLINKS)
    bench.press("4", "p", "y")
    bench.pass_time(6)
    bench.tell(uptime="1 seconds")
    assert "no effect after 5 s of pause: uplink cloud is connected" in bench.screen(120, 30)
    bench.press("p", "y")
    bench.client.events.put(Acknowledged("order uplink/cloud", "Not authorized"))
    bench.pass_time(0)
    assert "the gateway refused to pause uplink cloud: Not authorized" in bench.screen(120, 30)


def test_a_gateway_that_stands_still_is_not_connected() -> None:
    bench = Bench()
    for uptime in range(10, 14):
        bench.round(uptime, clients__connected=3)
    assert "● up" in bench.screen()
    bench.pass_time(3.5, hears=False)
    text = bench.screen()
    assert "NO ANSWER for 4s" in text or "NO ANSWER for 3s" in text
    assert "● " not in text.splitlines()[0]
    body = bench.session.draw(80, 24)[3:-1]  # below the banner, which has two lines
    assert {style for each in body for _, style in each} == {MUTED}


def test_figures_that_stop_are_told_while_something_else_comes() -> None:
    bench = Bench()
    for uptime in range(10, 14):
        bench.round(uptime)
    bench.pass_time(2.0)
    assert "no figures" not in bench.screen()
    bench.pass_time(1.0)
    assert "! no figures for 3s" in bench.screen()


def test_nothing_that_screens_cause_is_traffic() -> None:
    bench = Bench()
    for second in range(14):
        bench.hear("sensors/a", b"1")  # a sample, which the gateway counts as sent
        bench.tell(
            retained=False,
            tidegate__sys__messages_sent=30 * second,
            tidegate__queries__answered=4 * second,
            tidegate__queries__refused=0,
            tidegate__bridges__readings=0,
            publish__messages__received=4 * second,
            publish__messages__sent=30 * second + 4 * second + second + 1,
        )
        bench.round(100 + second)
    for size in ((40, 12), (80, 24), (160, 50)):
        text = bench.screen(*size)
        assert "0.0/s" in text
        assert bench.session.state.incoming() == 0.0
        assert bench.session.state.outgoing() == 0.0


def test_refused_access_stays_in_a_banner() -> None:
    bench = Bench()
    for each in (
        "$SYS/broker/uptime",
        "$SYS/broker/tidegate/log",
        "$CONTROL/answers/x",
        "sensors/#",
    ):
        bench.client.events.put(Subscribed(each, "Not authorized"))
    bench.client.refused = "Not authorized"
    bench.pass_time(60)
    text = bench.screen(150, 40)
    assert "you may not read the figures (read $SYS/#), nor the gateway's answers" in text
    assert "operator" in text
    assert "messages on sensors/#" in text
    assert "nothing needs you" not in text
    assert "not known yet" in text


def test_a_wrong_password_is_asked_for_and_not_tried_again() -> None:
    bench = Bench(connected=False)
    bench.client.events.put(
        Link(Phase.REFUSED, 1, "the gateway refused: Bad user name or password")
    )
    bench.pass_time(0)
    text = bench.screen(120, 30)
    assert "LOGIN REFUSED: the gateway refused: Bad user name or password" in text
    assert "password: " in text
    bench.press(*"geheim")
    assert "geheim" not in bench.screen(120, 30)
    bench.press("enter")
    assert bench.client.passwords == ["geheim"]
    bench.press("P", "escape")
    assert "P: give a password" in bench.screen(120, 30)


def test_a_silent_sensor_from_before_the_start_is_there_and_late() -> None:
    bench = Bench()
    row = {
        "topic": "sensors/attic/temperature",
        "time": 100_000,
        "payload": '{"value":21.4,"unit":"°C"}',
        "size": 26,
        "publisher": "serial:attic",
        "count": 9,
        "interval_seconds": 5.0,
        "rate": 0.0,
        "silent_seconds": 900.0,
        "silent": True,
    }
    bench.client.answers["topics"] = {"total": 1, "offset": 0, "rows": [row]}
    bench.tell(uptime="1 seconds")
    bench.pass_time(6)
    text = bench.screen(120, 30)
    assert "attic/temperature" in text
    assert "silent 15m, usually every 5s" in text
    assert "21.4 °C" in text
    assert "15m" in text
    bench.press("enter")
    assert "silent for" in bench.screen()


def test_a_cut_link_stays_in_a_banner_and_dims_what_is_shown() -> None:
    bench = Bench()
    bench.tell(**UPLINKS, uptime="5 seconds")
    bench.client.events.put(Link(Phase.WAITING, 3, "connection refused", 1_009.0))
    bench.pass_time(1)
    text = bench.screen(120, 30)
    assert "✕ NO CONNECTION: connection refused · attempt 3 in 8s · r: now" in text
    assert "what is shown is of" in text
    body = bench.session.draw(120, 30)[2:-1]
    assert {style for each in body for _, style in each} == {MUTED}
    bench.press("r")
    assert bench.client.passwords == [None]
    bench.press("4", "p")
    assert "nothing was sent" in bench.screen(120, 30)


def test_spans_of_channels_keep_their_unit() -> None:
    bench = Bench()
    row = {
        "kind": "channel",
        "name": "jobs",
        "filter": "work/#",
        "state": "open",
        "depth": 12,
        "oldest_seconds": 102.0,
    }
    bench.client.answers["queues"] = {"total": 1, "offset": 0, "rows": [row]}
    bench.press("4")
    bench.pass_time(3)
    text = bench.screen()
    assert "1m42s" in text
    assert "jobs" in text


def test_what_a_full_outbox_drops_is_lost() -> None:
    """While it dropped each new message, the screen said that nothing was lost, and it twice."""
    bench = Bench()
    full = "the outbox is full: local subscribers still get what the fleet will not"
    uplink = {"name": "plant", "state": "disconnected", "error": "no route", "waiting": 1_000}
    bench.client.answers["status"] = {
        "troubles": [full], "uplinks": [uplink], "survives_seconds": 0,
    }  # fmt: skip
    bench.tell(
        tidegate__uplink__plant__state="disconnected",
        tidegate__uplink__plant__waiting=1_000,
        tidegate__alarm__outbox_full=f'{{"raised": 900000, "text": "{full}"}}',
    )
    name = "$SYS/broker/tidegate/outbox/evicted/drop-newest"
    bench.client.inbox.put(Arrival(name, b"2696", True, bench.client.now))
    bench.pass_time(12)
    bench.pass_time(3)
    text = bench.screen(120, 30)
    assert "1,000 wait, 2,696 lost · the outbox is full" in text
    assert "nothing lost" not in text
    assert "2 things need you" in text
    assert "✕ outbox full" in text
    assert "lost   2,696" in text


def test_the_reason_of_an_outage_is_in_sight_at_80_columns() -> None:
    bench = Bench()
    bench.tell(**UPLINKS)
    assert "plant     down: Connection refused" in bench.screen()
    bench.press("4", "j")
    assert "Connection refused" in bench.screen()


def test_chatter_is_apart_from_events_and_lines_are_in_order() -> None:
    bench = Bench()
    lines = [
        {"time": 1_000_000 + n, "level": "INFO", "logger": logger, "message": message}
        for n, (logger, message) in enumerate([
            ("gateway.broker.connecting.connection_lines", "client 'cron' connected"),
            ("gateway.uplink.uplink", "uplink paused by ops"),
        ])
    ]  # fmt: skip
    bench.tell(tidegate__log__recent=json.dumps(lines))
    bench.press("6")
    text = bench.screen()
    assert "uplink paused by ops" in text
    assert "cron" not in text
    bench.press("c")
    assert "cron" in bench.screen()
    times = [each.time for each in bench.session.state.log]
    assert times == sorted(times)


def test_help_and_filter_are_always_in_the_footer() -> None:
    bench = Bench()
    for digit in "123456":
        bench.press(digit)
        assert " ? help" in bench.screen(80, 24).splitlines()[-1]
        assert " ? help" in bench.screen(40, 12).splitlines()[-1]


def test_figures_are_searched_and_use_the_width() -> None:
    bench = Bench()
    bench.tell(tidegate__aliases__in__hits=0, tidegate__storage__card_days=4_383)
    bench.press(":")
    bench.type("figures card")
    text = bench.screen(120, 30)
    assert ("$SYS/broker/#", 0) in bench.client.subscribed
    assert "4,383 d" in text
    assert "aliases" not in text
    assert max(map(len, text.splitlines())) == 120
    bench.press("escape")
    assert "$SYS/broker/#" in bench.client.unsubscribed


def test_every_line_fills_the_width_at_every_size() -> None:
    bench = Bench()
    bench.tell(**UPLINKS, uptime="5 seconds")
    bench.hear("sensors/温度計/温度計", "温度計温度計".encode())
    for digit in "123456":
        bench.press(digit)
        for size in ((1, 1), (10, 4), (20, 4), (40, 12), (76, 20), (80, 24), (120, 30), (200, 60)):
            bench.screen(*size)


FIGURES = {
    "uptime": "300 seconds", "clients__connected": 41, "clients__disconnected": 17,
    "tidegate__outbox__rows": 21_021, "tidegate__outbox__bytes": 11_100_000,
    "tidegate__outbox__oldest_seconds": 7_300, "tidegate__outbox__survives_seconds": 7_871_040,
    "tidegate__uplink__state": "disconnected", "tidegate__uplink__error": "no route to host",
    "tidegate__uplink__destination": "mqtts://new.example",
    "tidegate__uplink__next_attempt_seconds": 12, "tidegate__uplink__acknowledged": 5,
}  # fmt: skip
ANSWERED: dict[str, dict[str, object]] = {
    "status": {
        "gateway": "barn", "uptime_seconds": 4_000, "clients": {"connected": 53, "offline": 29},
        "survives_seconds": 8_216_640, "troubles": [], "silent": [], "alarms": [],
        "outbox": {"messages": 22_022, "bytes": 22_200_000, "oldest_seconds": 14_400},
        "uplinks": [{"name": "", "state": "paused", "error": "refused by an older answer",
                     "destination": "mqtts://old.example", "waiting": 22_022,
                     "next_attempt_seconds": 34}],
    },
    "queues": {"total": 1, "rows": [{
        "kind": "uplink", "name": "", "state": "paused", "error": "refused by an older answer",
        "depth": 22_022, "bytes": 22_200_000, "oldest_seconds": 14_400, "in_rate": 55.5,
        "out_rate": 66.6, "empty_seconds": 77, "next_attempt_seconds": 34}]},
    "rules": {"total": 0, "rows": []},
    "events": {"total": 0, "rows": [], "last": 0},
}  # fmt: skip
"""what the figures say, and what answers to queries said when some of that was different"""
OLDER = (
    "22,022", "22.2 MB", "95.1 days", "4h 00m", "4h00m", "1h 06m", "1h06m", "53 ", "29 offline",
    "paused", "older answer", "old.example", "34s", "55.5", "66.6", "77s",
)  # fmt: skip
"""what a screen would show of the answers"""


@pytest.mark.parametrize("keys", ["1", "1w", "4", "4w", "4p", "4\r", "6"])
def test_one_thing_has_one_figure(keys: str) -> None:
    bench = Bench()
    bench.client.answers |= ANSWERED
    bench.pass_time(3)
    bench.tell(**FIGURES)
    for uptime in range(301, 306):
        bench.round(uptime)
    bench.press(*["enter" if each == "\r" else each for each in keys])
    for size in ((40, 12), (80, 24), (160, 50), (200, 60)):
        text = bench.screen(*size)
        assert [each for each in OLDER if each in text] == [], (keys, size)


def test_figures_of_one_thing_are_there() -> None:
    bench = Bench()
    bench.client.answers |= ANSWERED
    bench.tell(**FIGURES)
    bench.round(301)
    text = bench.screen(200, 60)
    for each in ("21,021 wait", "21,021 messages", "capacity for 91.1 days", "next try in 12s"):
        assert each in text
    assert text.count("91.1 days") == 3
    assert "41 clients, 17 offline" in text
    bench.press("4")
    text = bench.screen(160, 50)
    for each in ("21,021", "no route to host", "91.1 days", "2h01m", "mqtts://new.example"):
        assert each in text


def test_answers_stand_in_where_figures_may_not_be_read() -> None:
    bench = Bench()
    bench.client.answers |= ANSWERED
    bench.client.events.put(Subscribed("$SYS/broker/uptime", "Not authorized"))
    bench.pass_time(6)
    bench.pass_time(3)
    text = bench.screen(200, 60)
    assert "paused" in text
    assert "22,022 wait" in text
    assert "95.1 days" in text
    bench.press("4")
    assert "22,022" in bench.screen()


def topic(name: str, **more: object) -> dict[str, object]:
    return {"topic": name, "time": 990_000, "payload": "1", "size": 1, "publisher": "c",
            "count": 9, "interval_seconds": 2.0, "rate": 0.5, **more}  # fmt: skip


def test_a_topic_that_speaks_again_is_silent_nowhere() -> None:
    bench = Bench()
    silent = {"topic": "sensors/attic", "silent": True, "silent_seconds": 600.0, "retained": False}
    answers = bench.client.answers
    answers["topics"] = {"total": 1, "offset": 0, "rows": [topic("sensors/attic", **silent)]}
    bench.pass_time(6)
    bench.pass_time(1)
    text = bench.screen(160, 50)
    assert "1 silent" in text
    assert "1 thing needs you" in text
    answers["topics"] = {"total": 0, "offset": 0, "rows": []}
    bench.pass_time(6)
    text = bench.screen(160, 50)
    assert "0 silent" in text
    assert "! " not in text
    bench.press("2")
    assert " silent" not in bench.screen()


def with_silent(bench: Bench, rows: list[dict[str, object]], **page: int) -> str:
    """Return the first screen once the gateway has answered with these silent topics."""
    bench.client.answers["topics"] = {"offset": 0, "rows": rows, **page}
    bench.pass_time(6)
    bench.pass_time(1)
    return bench.screen(160, 50)


def test_many_silent_topics_are_one_thing_with_their_number() -> None:
    bench = Bench()
    rows = [
        topic(f"s/{n}", publisher=f"{n}", silent=True, silent_seconds=600.0 - n, retained=False)
        for n in range(20)
    ]
    text = with_silent(bench, rows, total=480, next=20)
    assert "6 things need you" in text
    assert "475 more are silent" in text
    assert "480 topics, 480 silent" in text


def test_what_passes_a_where_is_only_what_came_after_it() -> None:
    bench = Bench()
    where = "payload.value > 60"
    bench.client.answers["topics"] = {"total": 1, "offset": 0, "rows": [
        topic("sensors/attic", silent=True, silent_seconds=600.0, retained=False)]}  # fmt: skip
    bench.press("2")
    bench.pass_time(3)
    bench.press("$")
    bench.type(where)
    at = bench.client.now
    for name, passed in (("before", ""), ("another", "payload.value > 1"), ("hot", where)):
        bench.client.inbox.put(Arrival(name, b'{"value":61}', False, at, passed))
    bench.pass_time(6)
    text = bench.screen(120, 30)
    assert "topics 1 " in text
    assert "hot" in text
    for each in ("attic", "before", "another", "silent"):
        assert each not in text
    bench.press("1")
    bench.pass_time(4)
    bench.press("2")
    assert "attic" not in bench.screen(120, 30)


def test_a_user_who_may_read_nothing_is_not_told_that_nothing_answers() -> None:
    """Nothing comes to such a user but refusals, each ten seconds: that is no frozen gateway."""
    bench = Bench()
    bench.client.refused = "Not authorized"
    bench.client.events.put(Subscribed("$SYS/broker/uptime", "Not authorized"))
    bench.pass_time(12)
    for keys in "126":
        bench.press(keys)
        for _ in range(4):
            bench.pass_time(1.0, hears=False)
            assert "NO ANSWER" not in bench.screen()
        assert "remembered_topics" not in bench.screen()


@pytest.mark.parametrize("cells", [40, 80])
def test_a_banner_is_not_cut_off(cells: int) -> None:
    bench = Bench()
    bench.client.refused = "Not authorized"
    bench.client.events.put(Subscribed("$SYS/broker/uptime", "Not authorized"))
    bench.pass_time(12)
    text = bench.screen(cells, 24)
    for each in ("$SYS/#", "$CONTROL", "operator's", "right"):
        assert each in text
    bench.client.events.put(
        Link(Phase.REFUSED, 1, "the gateway refused: Bad user name or password")
    )
    bench.pass_time(1)
    bench.press("escape")
    text = " ".join(bench.screen(cells, 24).split())
    assert "P: give a password" in text
    assert "what is shown is of" in text


def test_all_screens_are_named_at_80_cells() -> None:
    bench = Bench()
    bench.client.answers |= {**ANSWERED, "status": {"gateway": "boiler-house", "uplinks": []}}
    bench.pass_time(6)
    bench.pass_time(1)
    bench.round(41)
    assert "6 Events" in bench.screen(80, 24).splitlines()[0]


STUCK = {"name": "jobs", "state": "open", "depth": 130, "inflight": 0, "consumers": 0,
         "oldest_seconds": 275}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "no consumer is subscribed: 130 wait, the oldest for 4m"),
        ({"consumers": 2, "inflight": 20}, "20 sent and not acknowledged, 130 wait"),
        ({"consumers": 2}, "no consumer receives them: 130 wait"),
        ({"state": "paused"}, "paused: 130 wait, the oldest for 4m"),
    ],
)
def test_a_channel_that_nobody_serves_needs_a_person(
    changes: dict[str, object], words: str
) -> None:
    bench = Bench()
    bench.client.answers["status"] = {"channels_stuck": [{**STUCK, **changes}]}
    bench.pass_time(6)
    bench.pass_time(1)
    text = bench.screen()
    assert "1 thing needs you" in text
    assert "! channel jobs" in text
    assert words in text
    bench.press("enter")
    assert "[4 Queues]" in bench.screen()


def test_a_fleet_that_acknowledges_nothing_is_told_before_the_link_ends() -> None:
    bench = Bench()
    figures = {"state": "connected", "inflight": 40, "waiting": 173, "acknowledged": 9_000}
    bench.tell(**{f"tidegate__uplink__plant__{name}": value for name, value in figures.items()})
    for uptime in range(100, 112):
        bench.round(uptime)
    text = bench.screen()
    assert "! plant     connected, but nothing was acknowledged for 1" in text
    assert "173 wait, losses not known" in bench.screen(120, 30)
    bench.round(112, tidegate__uplink__plant__acknowledged=9_001)
    assert "nothing was acknowledged" not in bench.screen()


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (160, 50)])
def test_a_fault_is_told_in_full(size: tuple[int, int]) -> None:
    bench = Bench()
    bench.client.answers |= ANSWERED
    bench.pass_time(6)
    bench.tell(**FIGURES, tidegate__ledger__lost=3)
    bench.round(301)
    text = " ".join(bench.screen(*size).split())
    for each in ("no route to host", "21,021 wait, 3 lost", "capacity for 91.1 days", "12s"):
        assert each in text.replace("│ │", "").replace("  ", " "), each


REPEATED = {"id": 9, "time": 900_000, "until": 990_000, "severity": "warning",
            "subject": "meter-3", "text": "at 10.0.0.7: wrong", "count": 12}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "shared", "count": 1}, "meter-3   at 10.0.0.7: wrong since"),
        ({"kind": "flapping"}, "at 10.0.0.7: wrong · 12 times since"),
        ({"kind": "refused"}, "refused at 10.0.0.7: wrong · 12 times since"),
        ({"kind": "denied"}, "at 10.0.0.7: wrong · 12 times since"),
        ({"kind": "refused", "count": 2}, ""),  # a person who mistyped a password
        ({"kind": "refused", "until": 800_000}, ""),  # it was, and is no more
        ({"kind": "ended"}, ""),
    ],
)
def test_a_client_in_trouble_needs_a_person_while_it_is(
    changes: dict[str, object], words: str
) -> None:
    """The gateway has one event for all times, with the time of the last: it has always ended."""
    bench = Bench()
    row = {**REPEATED, **changes}
    bench.client.answers |= {"events": {"rows": [row], "total": 1, "last": 9}, "status": {}}
    bench.pass_time(6)
    bench.pass_time(1)
    text = bench.screen(120, 30)
    if words:
        assert "1 thing needs you" in text
        assert words in text
    else:
        assert "nothing needs you" in text


def test_a_gateway_that_crashed_is_told_for_a_while() -> None:
    bench = Bench()
    crash = "tidegate 1 started after a power cut, a crash or a kill: the run before did not stop"
    start = {"kind": "start", "subject": "gateway", "until": None, "count": 1}
    rows = [
        {**start, "id": 3, "time": 980_000, "severity": "warning", "text": crash},
        {**start, "id": 2, "time": 900_000, "severity": "warning", "text": crash},
        {**start, "id": 1, "time": 100_000, "severity": "info", "text": "tidegate 1 started"},
    ]
    bench.client.answers |= {"events": {"rows": rows, "total": 3, "last": 3}, "status": {}}
    bench.pass_time(6)
    bench.pass_time(1)
    text = " ".join(bench.screen(160, 50).split())
    assert "gateway started 26s ago after a power cut, a crash or a kill" in text
    assert "2 times within the hour" in text
    bench.pass_time(700)
    bench.pass_time(1)
    assert "nothing needs you" in bench.screen(120, 30)
    clean = {**start, "id": 4, "time": 1_700_000, "severity": "info", "text": "tidegate 1 started"}
    bench.client.answers["events"] = {"rows": [clean, *rows], "total": 4, "last": 4}
    rows[0]["time"] = 1_690_000
    bench.pass_time(6)
    bench.pass_time(1)
    assert "nothing needs you" in bench.screen(120, 30)


def test_silent_topics_of_one_publisher_are_one_thing() -> None:
    bench = Bench()
    rows = [
        topic(f"sensors/boiler/{name}", publisher="pump-7", silent=True, silent_seconds=20.0)
        for name in ("flow", "return", "temperature", "level")
    ]
    text = with_silent(bench, rows, total=4)
    assert "1 thing needs you" in text
    assert "pump-7    4 topics of it silent 1" in text
    assert "usually every 2s: boiler/flow, boiler/level, boiler/return, …" in text


def test_durations_are_by_the_clock_that_events_have() -> None:
    """A board without a battery begins in 1970; an outage of a minute had lasted for 50 years."""
    bench = Bench()
    hour = 3_600_000
    down = {"id": 1, "time": 940_000 - hour, "until": None, "severity": "warning", "kind": "link",
            "subject": "uplink", "text": "disconnected", "count": 1}  # fmt: skip
    answers = bench.client.answers
    answers |= {"status": {"uplinks": []}, "events": {"rows": [down], "total": 1, "last": 1}}
    client = {"id": "c", "connected": True, "since": 940_000 - hour}
    answers["clients"] = {"total": 1, "rows": [client]}
    for each in answers.values():
        each["time"] = 1_007_000 - hour
    bench.pass_time(6)
    bench.pass_time(1)
    bench.tell(tidegate__uplink__state="disconnected", tidegate__uplink__error="no route")
    text = bench.screen(160, 50)
    assert "down 1m: no route" in text
    assert "clock     59m 59s behind this machine's" in text or "1h 00m behind" in text
    bench.press("6")
    assert " 1m " in bench.screen(120, 30)
    bench.press("3")
    assert " 1m0" in bench.screen(120, 30)


def test_a_branch_whose_topics_were_asked_for_a_while_ago_has_no_age() -> None:
    """Only what is in view is asked for each two seconds; a closed branch is not."""
    bench = Bench()
    rows = [topic(f"plant/n{n}/a", silent=False, retained=False) for n in range(60)]
    for each in rows:
        each["time"] = 1_003_000
    bench.client.answers["topics"] = {"total": 60, "offset": 0, "rows": rows}
    bench.press("2")
    for _ in range(4):
        bench.pass_time(2)
    view = bench.session.view
    assert isinstance(view, TopicsScreen)
    view._complete = True  # as after all pages of more topics than one page has
    bench.client.answers["topics"] = {"total": 0, "offset": 0, "rows": []}
    bench.pass_time(9)
    branch = next(each for each in bench.screen().splitlines() if " n0 " in each)
    assert " — " in branch
    assert "1 topic" in branch
