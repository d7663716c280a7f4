"""`w` on a row: which topic, client, queue or rule it is about, and what the answer says."""

import re

from tests.support.silent_client import Bench
from tests.support.table import table
from tests.tui.test_session import CLIENT, full_bench, rows
from tui.line import width
from tui.subject import Subject, subject_of_event, subject_of_reading, subject_of_words
from tui.text import wrapped

NONE = "why: this line names no client, uplink or topic"
RULE = {"stream": "main", "lane": "live", "uplinks": ["cloud", "plant"]}


def flat(bench: Bench) -> str:
    """Return what is shown as one line: the answer may be wrapped."""
    return re.sub(r"[│▌\s]+", " ", bench.screen(80, 40))


def why(bench: Bench, *keys: str) -> str:
    """Return what `w` shows after these keys, at the smallest usual size; nothing may overflow."""
    bench.press(*keys[:1])
    bench.pass_time(6)
    bench.screen()
    bench.press(*keys[1:], "w")
    for _ in range(3):
        bench.pass_time(6)
    for cells, height in ((40, 12), (80, 24)):
        assert all(width(each) == cells for each in bench.session.draw(cells, height))
    return flat(bench)


def denied(subject: str) -> dict[str, object]:
    text = "user 'anna' may not read 'secret/#'"
    return {"id": 8, "time": 900_000, "until": 950_000, "severity": "warning", "kind": "denied",
            "subject": subject, "text": text, "count": 4}  # fmt: skip


@table(
    ("kind", "subject", "text", "expected"),
    [
        ("ended", "pump-7", "at 10.0.0.1", Subject("client", "pump-7")),
        ("denied", "others", "may not read 'a'", NONE),
        ("refused", "without identifier", "at 10.0.0.1", NONE),
        ("link", "uplink plant", "down", Subject("queue", "uplink plant")),
        ("link", "uplink", "down", Subject("queue", "uplink ")),
        (
            "order",
            "client 'pump-7': kicked",
            "requested by client 'ops'",
            Subject("client", "pump-7"),
        ),
        ("start", "gateway", "started", NONE),
        (None, None, None, NONE),
    ],
)
def test_the_subject_of_an_event(
    kind: str, subject: str, text: str, expected: Subject | str
) -> None:
    assert subject_of_event({"kind": kind, "subject": subject, "text": text}) == expected


@table(
    ("words", "expected"),
    [
        ("client 'pump 7' may not read 'a'", Subject("client", "pump 7")),
        ('paused, requested by client "it\'s"', Subject("client", "it's")),
        ("client 'a\\x1b' may not", NONE),
        ("uplink plant: was down for 3 s", Subject("queue", "uplink plant")),
        ("uplink: was down for 3 s", Subject("queue", "uplink ")),
        ("uplink to 10.0.0.1:1883: connected", NONE),
        ("'cmd/a' came from the fleet again: a loop ends here", Subject("topic", "cmd/a")),
    ],
)
def test_the_subject_of_a_line_of_the_log(words: str, expected: Subject | str) -> None:
    assert subject_of_words(words) == expected


def test_the_topic_of_a_reading() -> None:
    row = {"node": "n1", "quantity": "t", "instance": ""}
    assert subject_of_reading(row) == Subject("topic", "sensors/n1/t")
    assert subject_of_reading({**row, "instance": "2"}) == Subject("topic", "sensors/n1/t/2")


def test_words_are_wrapped() -> None:
    assert wrapped("", 10) == [""]
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("  one two three", 10) == ["  one two", "    three"]
    assert wrapped("x" * 20, 8) == ["x" * 8, "x" * 8, "x" * 4]
    assert wrapped("温度計温度計", 5) == ["温度", "計温", "度計"]


def test_a_client_that_is_connected() -> None:
    bench = full_bench()
    bench.client.answers["client"]["client"] = {**CLIENT, "inflight": 20, "subscriptions": 3}
    bench.client.answers["client"]["held_back"] = 2
    bench.client.answers["events"] = rows(denied("tablet-7"), denied("other"), last=8)
    text = why(bench, "3")
    for part in (
        "connected since", "s/# at QoS 1", "where a > 1: 3 of 9 passed", "2 more subscriptions",
        "5 messages, 999 B, oldest 12s", "window of 20 is full", "88 dropped, the oldest first",
        "2 messages that it may not read now", "two devices", "taken over, after 4s",
    ):  # fmt: skip
        assert part in text, part
    assert text.count("may not read 'secret/#' (4 times") == 1
    bench.client.answers["events"] = rows(denied("others"), last=8)
    bench.pass_time(6)
    assert "some are counted together" in flat(bench)


def test_a_client_that_is_offline() -> None:
    bench = full_bench()
    row = {**CLIENT, "connected": False, "disconnected": 900_000, "expiry": 60, "waiting": 0}
    answer: dict[str, object] = {"client": row, "ends": [], "subscriptions": [], "drops": {}}
    bench.client.answers["client"] = answer
    text = why(bench, "4", "j", "j")
    for part in (
        "offline since", "QoS 0 does not wait", "its session ends at", "nothing: it has no",
        "nothing since the gateway's start", "no refusal for want of a right",
    ):  # fmt: skip
        assert part in text, part
    answer["client"] = {**row, "expiry": None}
    bench.pass_time(3)
    assert "its session never expires" in bench.screen()


def test_a_client_that_is_not_known_any_more() -> None:
    bench = full_bench()
    bench.client.answers["client"] = {"error": "there is no client or session 'tablet-7'"}
    text = why(bench, "3")
    assert "there is no client or session 'tablet-7'" in text
    assert "connected since" not in text
    bench = full_bench()
    bench.client.answers["client"] = {"client": None, "ends": []}
    assert "it has no session" in why(bench, "3")


def test_an_uplink_that_waits() -> None:
    bench = full_bench()
    reason = "outside of its schedule: waiting until 2030-01-01 06:00"
    bench.tell(tidegate__uplink__cloud__state="waiting", tidegate__uplink__cloud__error=reason)
    for name in ("budget", "budget_used"):
        bench.tell(**{f"tidegate__uplink__cloud__{name}": 2_000_000})
    for second in range(4):
        left = 13 - 2 * second  # 1 a second comes, 3 go
        bench.tell(
            retained=False,
            tidegate__uplink__cloud__waiting=left,
            tidegate__uplink__cloud__acknowledged=3 * second,
            tidegate__outbox__rows=left,
            tidegate__outbox__bytes=900,
            tidegate__outbox__oldest_seconds=30,
        )
        bench.round(100 + second)
    event = {**denied("uplink cloud"), "kind": "link", "until": None}
    bench.client.answers["events"] = rows(event, last=8)
    text = why(bench, "4")
    for part in (
        "waiting: the link waits until it may be up", "until 2030-01-01 06:00", "since",
        "2.0 MB of 2.0 MB of today are used", "7 messages, 900 B", "waits for 30s",
        "1.0/s come, 3.0/s go", "3s at these rates", "for 2.0 h, then the outbox is full",
    ):  # fmt: skip
        assert part in text, part


def test_an_uplink_is_told_by_its_figures_where_no_query_is_answered() -> None:
    bench = Bench()
    bench.client.refused = "Not authorized"
    bench.tell(tidegate__uplink__state="disconnected", tidegate__uplink__error="Connection refused")
    text = why(bench, "4")
    for part in ("Not authorized", "the link is down", "Connection refused"):
        assert part in text, part
    assert "nothing" not in text


def test_a_channel_that_nobody_reads() -> None:
    bench = full_bench()
    text = why(bench, "4", "j")
    assert "consumers" not in text
    assert ("$SYS/broker/#", 0) in bench.client.subscribed
    bench.tell(tidegate__channels__jobs__consumers=0, tidegate__channels__jobs__put_aside=3)
    text = bench.screen()
    for part in ("none is subscribed", "3 are paused", "12 messages", "work/#"):
        assert part in text, part
    row = {"kind": "channel", "name": "jobs", "state": "paused", "depth": 0}
    bench.client.answers["queues"] = rows(row)
    bench.pass_time(3)
    assert "an operator has paused it" in bench.screen()
    bench.client.answers["queues"] = rows()
    bench.pass_time(3)
    assert "there is no such queue now" in bench.screen()


def test_delayed_messages() -> None:
    bench = full_bench()
    bench.client.answers["queues"] = rows({"kind": "delayed", "name": "", "depth": 2})
    assert "waits for the second that its publisher has named" in why(bench, "4")


def test_a_rule_behind_others() -> None:
    bench = full_bench()
    counters = {"evaluated": 100, "passed": 16, "filtered": 84, "null": 4, "over_budget": 3}
    first = {**RULE, "rule": "0@1", "topic": "sensors/#", "where": None, "counters": counters}
    bench.client.answers["rules"] = rows(
        first,
        {**first, "rule": "1@1", "stream": "other", "topic": "elsewhere"},
        {**first, "rule": "2@1", "uplinks": ["cloud"], "topic": "part", "where": "a > 1"},
        {**first, "rule": "3@1", "topic": "last"},
    )
    text = why(bench, "4", "tab", "G")
    for part in (
        "cloud, plant, stream main, lane live", "100 messages reached it", "16 of these",
        "84: its where was not TRUE; of these 4 NULL", "3 of the NULL", "sensors/# passed 16",
        "part where a > 1 passed 16", "to cloud",
    ):  # fmt: skip
        assert part in text, part
    assert "elsewhere" not in text
    bench.press("escape", "g", "w")
    bench.pass_time(6)
    assert "no rule of its stream for these uplinks" in bench.screen(80, 40)
    bench.client.answers["rules"] = rows()
    bench.pass_time(6)
    assert "there is no such rule now" in bench.screen()


def test_a_reading_an_event_and_a_line() -> None:
    bench = full_bench()
    assert "sensors/n1/t/2" in why(bench, "5", "tab")
    bench = full_bench()
    assert "uplink plant" in why(bench, "6")
    bench.press("escape", "enter", "w")
    assert "uplink plant: why it waits, and until when" in bench.screen()


def test_rows_without_an_answer_say_so() -> None:
    bench = full_bench()
    bench.press("5")
    bench.pass_time(6)
    bench.screen()
    bench.press("w")
    assert "this is a bridge" in bench.screen()
    bench.pass_time(8)
    assert "w why" not in bench.screen(160, 24).splitlines()[-1]
    bench = full_bench()
    event = {"id": 1, "kind": "start", "subject": "gateway"}
    bench.client.answers["events"] = rows(event, last=1)
    bench.press("6")
    bench.pass_time(12)
    bench.screen()
    bench.press("w")
    assert NONE in bench.screen()
    bench.press("2")
    bench.hear("a/b", b"1")
    bench.screen()
    bench.press("g", "w")
    assert "this is a branch" in bench.screen()


def test_the_footer_and_the_help_have_it_where_it_answers() -> None:
    for keys in (
        ("3",),
        ("4",),
        ("4", "tab"),
        ("4", "enter"),
        ("3", "enter"),
        ("5", "tab"),
        ("6",),
    ):
        bench = full_bench()
        bench.press(keys[0])
        bench.pass_time(6)
        bench.screen(80, 40)
        bench.press(*keys[1:])
        bench.pass_time(6)
        assert "w why" in bench.screen(80, 40).splitlines()[-1], keys
        bench.press("?")
        assert "w          why" in bench.screen(160, 60), keys


def test_a_long_answer_is_moved_through() -> None:
    bench = full_bench()
    bench.client.answers["why"] = {"lines": [f"line {n}" for n in range(60)]}
    bench.press("2")
    bench.hear("a/b", b"1")
    bench.screen()
    bench.press("G", "w")
    bench.pass_time(6)
    assert "line 59" not in bench.screen()
    bench.press("G")
    assert "line 59" in bench.screen()
    bench.press("y")
    assert bench.copied[-1] == "line 59"
