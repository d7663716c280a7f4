"""Keys, the stack of views, commands: without a terminal and without a gateway."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.silent_client import Bench
from tui.prefs import Preferences
from tui.screens import COMMANDS, SCREENS
from tui.screens.events import CHATTER
from tui.session import FLOOD
from tui.state import LogLine
from tui.table import Table

CLIENT = {
    "id": "tablet-7", "user": None, "connected": True, "window": 20, "inflight": 3, "waiting": 5,
    "waiting_bytes": 999, "class": "application", "expiry": None, "shared_identifier": True,
    "address": "10.0.0.7:4000", "listener": "0.0.0.0:1883", "version": "5", "since": 900_000,
    "received_rate": 1.0, "sent_rate": 812.0, "silent_seconds": 1.0, "keep_alive": 60,
}  # fmt: skip


def rows(*found: object, **more: object) -> dict[str, object]:
    return {"total": len(found), "offset": 0, "rows": list(found), **more}


def full_bench() -> Bench:
    """Return a session of a gateway that answers everything."""
    made = Bench()
    answers = made.client.answers
    answers["clients"] = rows(CLIENT, {**CLIENT, "id": "x\x1b[2J", "shared_identifier": False})
    answers["client"] = {
        "client": CLIENT,
        "subscriptions": [
            {"filter": "s/#", "qos": 1, "where": "a > 1", "evaluated": 9, "passed": 3}
        ],
        "ends": [
            {"time": 900_000, "seconds": 4.0, "reason": "taken over", "address": "10.0.0.8:1"}
        ],
        "drops": {"oldest": 88, "newest": 0},
        "oldest_seconds": 12.0,
    }
    answers["client/disconnect"] = {"id": "tablet-7"}
    answers["session/drop"] = {"id": "tablet-7", "messages": 5}
    answers["bridges"] = rows({
        "kind": "serial", "name": "tty", "place": "/dev/tty", "state": "waiting",
        "error": "no such device", "age": None, "counted": {"frames": 5},
        "troubles": {"n1": "late"},
        "refused": [{"reason": "r", "count": 2, "example": "bad", "age": 1.0}],
    })  # fmt: skip
    reading = {"kind": "serial", "name": "tty", "node": "n1", "quantity": "t", "instance": "2",
               "value": 21.5, "unit": "°C", "age": 7.0, "quality": "frozen"}  # fmt: skip
    answers["readings"] = rows(reading)
    answers["events"] = rows(
        {"id": 7, "time": 900_000, "until": None, "severity": "error", "kind": "link",
         "subject": "uplink plant", "text": "down", "count": 3},
        last=7,
    )  # fmt: skip
    answers["topic"] = {"topic": None, "remembered": False, "receivers": ["tablet-7"],
                        "filtered": ["ha"], "retained": None}  # fmt: skip
    answers["why"] = {"lines": ["message 1", "  rule 0: TRUE"]}
    answers["topics"] = {"error": "the gateway remembers no topics: set remembered_topics"}
    answers["rules"] = rows({
        "rule": "0@1", "uplinks": ["cloud"], "topic": "sensors/#", "where": "payload.value > 20",
        "counters": {"evaluated": 100, "passed": 16, "bytes_saved": 24_000, "microseconds": 3.4},
    })  # fmt: skip
    answers["queues"] = rows(
        {"kind": "uplink", "name": "cloud", "state": "connected", "depth": 0},
        {"kind": "channel", "name": "jobs", "filter": "work/#", "state": "open", "depth": 12},
        {"kind": "session", "name": "tablet-7", "state": "offline", "depth": 5},
    )
    answers["status"] = {"gateway": "barn", "survives_seconds": 7_200, "uptime_seconds": 90,
                         "uplinks": [], "clients": {"connected": 2, "offline": 0}}  # fmt: skip
    made.pass_time(12)
    return made


@pytest.fixture
def bench() -> Bench:
    return full_bench()


def table_of(bench: Bench) -> Table[Any]:
    """Return the table in view."""
    table = bench.session.view.table
    assert table is not None
    return table


def test_digits_and_tabs(bench: Bench) -> None:
    for index, screen in enumerate(SCREENS):
        bench.press(str(index + 1))
        assert f"[{index + 1} {screen.title}" in bench.screen()
        bench.press(":")
        bench.type(screen.title.lower())
        assert bench.session.screen == index
    first = bench.screen(120, 30).splitlines()[0]
    bench.session.click(first.index("3 Clients"), 0)
    assert bench.session.screen == 2


def test_clients(bench: Bench) -> None:
    bench.press("3")
    bench.pass_time(4)
    text = bench.screen(160, 40)
    for part in ("! tablet-7", "! shared", "3/20", "x·[2J", "812"):
        assert part in text
    bench.press("enter")
    bench.pass_time(0)
    text = bench.screen(120, 40)
    for part in (
        "s/#  QoS 1",
        "$where a > 1",
        "3 of 9 pass",
        "taken over",
        "oldest 88",
        "outlives",
    ):
        assert part in text
    bench.press("K")
    assert "Disconnect tablet-7?" in bench.screen()
    bench.press("y")
    assert ("client/disconnect", {"id": "tablet-7"}) in bench.client.queried
    assert "disconnected tablet-7" in bench.screen()
    bench.press("escape", "D")
    assert "5 waiting messages and its subscriptions are gone" in bench.screen(100, 30)
    bench.press("enter")
    assert not any(what == "session/drop" for what, _ in bench.client.queried)
    bench.press("D", "y")
    assert ("session/drop", {"id": "tablet-7"}) in bench.client.queried


def test_pages_and_server_side_sorting_of_many_clients(bench: Bench) -> None:
    bench.client.answers["clients"] = rows(CLIENT) | {"total": 10_000}
    bench.press("3", "s", "s", "s")
    bench.pass_time(5)
    bench.screen()
    assert any(request.get("sort") == "received_rate" for _, request in bench.client.queried)
    assert "1 to 100 of 10,000" in bench.screen(100, 30)
    bench.press("n")
    bench.pass_time(5)
    bench.screen()
    assert any(request.get("offset") == 100 for _, request in bench.client.queried)
    bench.press("/")
    bench.type("tablet")
    bench.pass_time(5)
    assert any(request.get("match") == "*tablet*" for _, request in bench.client.queried)


def test_queues(bench: Bench) -> None:
    bench.press("4")
    bench.pass_time(5)
    text = bench.screen(160, 50)
    for part in ("jobs", "payload.value > 20", "16 %", "24.0 kB", "2.0 h"):
        assert part in text
    bench.press("j", "E", "y")
    assert ("channel/jobs/empty", "") in bench.client.orders
    bench.pass_time(6)
    bench.press("p", "y")
    assert ("channel/jobs/pause", "") in bench.client.orders
    bench.press("enter")
    bench.screen()
    bench.press("escape", "j", "enter")
    assert "tablet-7" in bench.session.view.name()


def test_panes(bench: Bench) -> None:
    """`tab` gives the keys to the table below, and escape takes them back."""
    for digit, cursor in (("4", "payload.value"), ("5", "21.5"), ("6", "")):
        bench.press(digit)
        bench.pass_time(5)
        bench.screen(100, 40)
        view = bench.session.view
        assert view.focused is view.table
        bench.press("tab")
        assert view.focused is view.below is not view.table
        assert cursor in bench.screen(100, 40)
        bench.press("j", "escape")
        assert view.focused is view.table
        bench.press("tab", "z")
        assert view.focused is view.table
        bench.press("z")


def test_actions_on_marked_rows(bench: Bench) -> None:
    bench.press("4")
    bench.pass_time(5)
    bench.press("space", "space", "p")
    assert "Pause 2 queues?" in bench.screen()
    bench.press("y")
    assert bench.client.orders == [("uplink/cloud", "pause")]
    bench.pass_time(6)
    assert bench.client.orders[1:] == [("channel/jobs/pause", "")]
    bench.pass_time(6)
    bench.press("escape")
    assert not table_of(bench).marked
    bench.press("3")
    bench.pass_time(4)
    names = [str(row["id"]) for row in table_of(bench).rows][:2]
    bench.press("space", "space", "K")
    assert "Disconnect 2 clients?" in bench.screen(100, 30)
    bench.press("y")
    ended = [request["id"] for what, request in bench.client.queried if what == "client/disconnect"]
    assert ended == names
    bench.press("D")
    assert "their subscriptions are gone" in bench.screen(100, 30)


def test_rejected_messages_are_sent_again(bench: Bench) -> None:
    bench.press("4")
    bench.pass_time(5)
    assert not [each for each in bench.session.actions() if each.label == "redrive"]
    bench.tell(tidegate__uplink__rejected=3)
    bench.client.answers["rejected"] = {"done": True, "count": 2}
    assert "3 that the fleet rejected" in bench.screen(100, 40)
    bench.press("R")
    assert "Redrive what uplink cloud rejected?" in bench.screen(100, 40)
    bench.press("y")
    expected = {"do": "retry", "numbers": "all", "uplink": "cloud"}
    assert ("rejected", expected) in bench.client.queried
    assert "2 put back into the outbox of cloud" in bench.screen(100, 40)


def test_how_many_pass_a_where_and_what_it_costs(bench: Bench) -> None:
    """What the index excludes is evaluated for no message, and has not passed."""
    where = "payload.value > 60"
    row: dict[str, object] = {"filter": "#", "qos": 0, "where": where, "messages": 5_000,
                              "evaluated": 118, "passed": 118}  # fmt: skip
    bench.client.answers["client"] = {"client": None, "subscriptions": [row]}
    bench.press("2", "$")
    bench.type(where)
    bench.pass_time(3)
    assert " pass," not in bench.screen(160, 30)
    row |= {"messages": 5_812, "evaluated": 318, "passed": 236, "index_microseconds": 2.0}
    bench.pass_time(2)
    title = bench.screen(160, 30)
    assert "118 of 812 pass, 15 %" in title
    assert "2.0 µs a message, 0.032 % of a core" in title
    row |= {"messages": 6_624, "evaluated": 518, "passed": 354, "microseconds": 8.0}
    bench.pass_time(2)
    title = bench.screen(160, 30)
    assert "236 of 1,624 pass, 15 %" in title
    assert "4.0 µs a message, 0.092 % of a core" in title
    assert ("client", {"id": bench.client.client_id}) in bench.client.queried


def test_nodes(bench: Bench) -> None:
    bench.press("5")
    bench.pass_time(4)
    text = bench.screen(120, 30)
    for part in (
        "serial tty",
        "◌ waiting",
        "no such device",
        "n1: late",
        "refused 2: bad",
        "21.5 °C",
        "frozen",
    ):
        assert part in text
    bench.press("enter")
    bench.pass_time(1)
    assert "t/2" in bench.screen()


def test_events_and_log(bench: Bench) -> None:
    bench.press("6")
    assert "down (3 times)" in bench.screen(120, 30)
    bench.press("enter")
    assert "event 7" in bench.screen()
    bench.press("escape", "L")
    odd = {"time": 1_000_000, "level": "ERROR", "logger": "gateway.uplink", "message": "[b]odd\x1b"}
    bench.tell(tidegate__log__recent=json.dumps([odd]))
    assert "[b]odd·" in bench.screen()
    bench.press("space")
    assert "paused" in bench.screen()
    bench.press("/")
    bench.type("!odd")
    assert "[b]odd" not in bench.screen()


def test_topics_are_sampled_where_the_gateway_remembers_none(bench: Bench) -> None:
    bench.press("2")
    bench.pass_time(12)
    assert ("#", 1_000) in bench.client.subscribed
    bench.hear("sensors/a/\u202e[bold]", b"\x1b[2J[/red]")
    bench.hear("sensors/a/t", b'{"value":21.5,"unit":"C"}')
    bench.hear("sensors/a/t", b'{"value":22.5,"unit":"C"}')
    text = bench.screen(120, 30)
    assert "·[bold]" in text
    assert "22.5 C" in text
    assert "sampled each 1s" in text
    bench.press("/", *"a/t", "enter")
    assert "[bold]" not in bench.screen()
    bench.press("G", "enter")
    for _ in range(4):
        assert "sensors/a/t" in bench.screen(100, 30)
        bench.press("v")
    bench.press("b")
    assert "█" in bench.screen(100, 30)
    bench.press("b", "w")
    bench.pass_time(1)
    text = bench.screen(100, 30)
    for part in ("tablet-7", "gets each message", "ha", "a filter decides", "rule 0: TRUE"):
        assert part in text
    bench.press("escape", "escape", "1")
    assert "#" in bench.client.unsubscribed


def test_a_flood_of_samples_is_thinned_out(bench: Bench) -> None:
    bench.press("2")
    bench.pass_time(12)
    for number in range(int(FLOOD) * 4):
        bench.session.state.apply(f"t/{number % 50}", b"1", bench.client.now)
    bench.pass_time(3)
    assert bench.client.subscribed[-1] == ("#", 4_000)
    assert bench.session.sampling_every == 4_000


def test_branches_open_and_close(bench: Bench) -> None:
    bench.press("2")
    bench.hear("a/b/c", b"1")
    bench.hear("a/b/d", b"2")
    shown = bench.screen()
    assert "c" in shown
    bench.press("g", "h")
    assert "b  " not in bench.screen().splitlines()[4]
    bench.press("l", "j", "right", "left", "left")
    bench.press("enter")
    bench.press("f")
    bench.press("ctrl+u")
    bench.type("a/#")
    assert "a/#" in bench.screen()


def test_publish_and_clear_ask_first(bench: Bench) -> None:
    bench.client.answers["retained/clear"] = {"filter": "a/b", "cleared": 1, "more": False}
    bench.press("2")
    bench.hear("a/b", b"1")
    bench.screen()
    bench.press("G", "P")
    bench.type("x")
    assert "Publish x on a/b?" in bench.screen()
    bench.press("y")
    assert bench.client.published == [("a/b", b"x")]
    bench.press("P", "ctrl+u")
    bench.type("a/# x")
    assert "without wildcards" in bench.screen()
    bench.press("X", "n", "X", "y")
    assert bench.client.queried.count(("retained/clear", {"filter": "a/b"})) == 1
    assert "cleared what was retained on a/b" in bench.screen()


def test_the_verdict_leads_to_its_place(bench: Bench) -> None:
    bench.tell(
        uptime="9 seconds", tidegate__alarm__disk='{"raised": 900000, "text": "the disk is full"}'
    )
    bench.client.answers["status"]["uplinks"] = [
        {"name": "plant", "state": "disconnected", "error": "no route", "waiting": 12}
    ]
    bench.client.answers["status"]["troubles"] = ["publishers are refused"]
    bench.client.answers["status"]["silent"] = [
        {"kind": "serial", "name": "tty", "state": "silent", "error": ""}
    ]
    bench.pass_time(3)
    text = bench.screen(140, 40)
    for part in ("4 things need you", "publishers are refused", "no route · 12 wait", "down 1m"):
        assert part in text
    for part in ("serial bridge silent", "the disk is full", "capacity for 2.0 h"):
        assert part in text
    bench.press("j", "enter")
    assert bench.session.view.title == "Queues"
    bench.press("escape", "k", "enter")
    assert bench.session.view.title == "Events"


def test_plots_move_in_time_together(bench: Bench) -> None:
    for step, until in ((1, 1_000_000), (10, 1_000_000), (60, 1_000_020)):
        figures = {"messages_in": [1.0] * 20, "outbox_messages": [5.0] * 20}
        bench.session.courses[step].apply({"step": step, "until": until, "figures": figures}, "")
    assert "last 10 min" in bench.screen(120, 40)
    bench.press("left")
    assert "10 min until" in bench.screen(120, 40)
    bench.press("right", "]")
    assert "last 3 h" in bench.screen(120, 40)
    bench.press("]", "]")
    assert "last 24 h" in bench.screen(120, 40)
    bench.press("[")
    assert bench.session.span == 1


def test_events_are_new_until_they_are_marked(tmp_path: Path, bench: Bench) -> None:
    bench.session.preferences = Preferences(tmp_path / "tui.json")
    assert bench.session.unseen() == 0
    bench.client.answers["events"] = rows(
        {"id": 9, "time": 950_000, "until": None, "severity": "info", "kind": "order",
         "subject": "pause", "text": "by ops", "count": 1},
        last=9,
    )  # fmt: skip
    bench.pass_time(6)
    assert "6 Events 1" in bench.screen(120, 30)
    bench.press("m")
    assert bench.session.unseen() == 0
    assert Preferences(tmp_path / "tui.json").seen == {"barn": 9}


def test_commands(bench: Bench) -> None:
    bench.press(":")
    assert "tab" not in bench.screen()
    assert "clients" in bench.screen()
    bench.type("nonsense")
    assert "no command 'nonsense'" in bench.screen()
    bench.press(":")
    bench.type("topic a/b")
    assert bench.session.view.name() == "a/b"
    bench.press("escape", ":")
    bench.type("theme tide-light")
    assert bench.session.theme_wanted == "tide-light"
    for name in COMMANDS:
        assert name in dict(bench.session.commands())
    bench.press(":")
    bench.type("help")
    assert "keys and signs" in bench.screen()
    bench.press("?")
    assert "keys and signs" not in bench.screen()


def test_copy_scroll_paste_and_quit(bench: Bench) -> None:
    bench.press("3")
    bench.pass_time(4)
    bench.press("y")
    assert bench.copied
    bench.session.scroll(1)
    bench.session.click(10, 4)
    assert table_of(bench).cursor == 0
    bench.press("S", "pagedown", "pageup", "home", "end", "ctrl+s", "T")
    assert bench.session.screenshot_wanted
    bench.press("/")
    bench.session.paste("tab\x1b")
    assert "/tab" in bench.screen()
    bench.press("escape", "escape")
    assert bench.session.view.title == "Now"
    bench.press("q")
    assert bench.session.ended


def every_view() -> list[tuple[str, ...]]:
    """Return the keys that lead to each view from the first."""
    screens = [(digit,) for digit in "123456"]
    return [*screens, ("2", "enter"), ("3", "enter"), ("4", "enter"), ("4", "e"), ("5", "enter"),
            ("6", "enter"), ("6", "L"), ("2", "w"), ("3", "w"), ("4", "w"), ("4", "j", "w"),
            ("4", "tab", "w"), ("5", "tab", "w"), ("6", "w"), ("?",)]  # fmt: skip


def at_view(keys: tuple[str, ...]) -> Bench:
    """Return a session of a gateway with something of everything, in which keys were pressed."""
    made = full_bench()
    for name in ("a/b", "a/c"):
        made.hear(name, b'{"value":1}')
    made.session.state.log.append(LogLine(1_000.0, "info", CHATTER, "anna came"))
    made.press(*keys[:1])
    made.pass_time(12)
    made.screen(140, 50)
    if keys[:1] == ("2",) and len(keys) > 1:
        made.press("down", "down")
    made.press(*keys[1:])
    made.pass_time(12)
    made.screen(140, 50)
    return made


def reported(bench: Bench) -> tuple[object, ...]:
    """Return everything that a key may change."""
    session, client = bench.session, bench.client
    return (
        bench.session.draw(140, 50), session.screen, len(session.stack), session.question,
        session.editor, session.theme_wanted, session.screenshot_wanted,
        session.redraw_wanted, session.ended,
        len(bench.copied), len(client.queried), dict(session.preferences.seen),
    )  # fmt: skip


@pytest.mark.uncovered
@pytest.mark.parametrize("keys", every_view(), ids="-".join)
def test_every_key_that_the_help_lists_does_something(keys: tuple[str, ...]) -> None:
    here = at_view(keys)
    listed = {each.key for each in here.session.actions_of(here.session.view)}
    listed |= {each.key for each in here.session.common()}
    listed -= {keys[0]} | ({"escape"} if len(here.session.stack) == 1 else set())
    idle = []
    for key in sorted(listed - {"right", "left", "l", "h", "up", "k", "down", "j", "[", "b"}):
        bench = at_view(keys)
        before = reported(bench)
        bench.session.key(key, key if len(key) == 1 else None)
        if reported(bench) == before:
            idle.append(key)
    assert not idle


@pytest.mark.parametrize(("there", "back"), [("]", "["), ("left", "right")])
def test_keys_of_plots(bench: Bench, there: str, back: str) -> None:
    for digit in "14":
        bench.press(digit)
        before = bench.screen(140, 60)
        bench.session.key(there)
        assert bench.screen(140, 60) != before
        bench.session.key(back)
        assert bench.screen(140, 60) == before


def test_the_table_alone(bench: Bench) -> None:
    bench.client.answers["bridges"] = rows({"kind": "serial", "name": "tty", "state": "open"})
    bench.pass_time(12)
    for digit, below in (("4", "capacity "), ("5", "readings of"), ("6", "╭ log")):
        bench.press(digit)
        bench.pass_time(12)
        assert below in bench.screen(), digit
        bench.press("z")
        assert below not in bench.screen()
        bench.press("escape")
        assert below in bench.screen()


def test_every_key_of_every_view_is_told_by_the_help(bench: Bench) -> None:
    for digit in "123456":
        bench.press(digit)
        bench.screen()
        actions = bench.session.actions_of(bench.session.view)
        bench.press("?")
        text = bench.screen(160, 60)
        for action in actions:
            assert action.label in text
        bench.press("escape")
        bench.press("escape")


def test_a_where_is_checked_while_it_is_typed(bench: Bench) -> None:
    bench.press("2")
    bench.hear("a/b", b"1")
    bench.press("$", *"payload.value >")
    assert "✔ accepted" not in bench.screen(140, 30)
    bench.press("enter")
    assert "$where: " in bench.screen(140, 30)
    assert bench.client.wheres[-1] == ""
    bench.press("$", *"payload.value > 60")
    assert "✔ accepted" in bench.screen(140, 30)
    bench.press("enter")
    assert bench.client.wheres[-1] == "payload.value > 60"
    text = bench.screen(140, 30)
    assert "topics 0 · $where payload.value > 60" in text
    assert "what passes, each topic at most every 1s" in text
    bench.press("$", "ctrl+u", "enter")
    bench.pass_time(0)
    assert "$where" not in bench.screen(140, 30).splitlines()[1]
