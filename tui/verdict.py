"""What needs a person, the worst first: cause, since when, and how long it can last."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tui.queries import Answer, Document, number, text
from tui.state import GatewayState, Uplink
from tui.text import amount, lasting, outage, span, time_of_day
from tui.topics import Topic

ERRNO = re.compile(r"(?<![^\s(])[^\s(]+: \[Errno -?\d+\] ")
"""an address and the number of an error in front of its words"""
DOWN = ("disconnected", "paused")
REPEATED = {"shared": 1, "flapping": 1, "refused": 3, "denied": 3}
"""kinds of events that need a person while they are repeated, and from how many times on"""
RECENT = 120.0
"""seconds since the last time within which an event counts as going on"""
CRASH_RECENT, CRASHES_WITHIN = 600.0, 3_600.0
"""seconds for which a start after a crash is shown, and in which such starts are counted"""
CLOCKS_APART = 60.0
"""seconds by which the gateway's clock differs from ours before that needs a person"""
UNANSWERED = 10.0
"""seconds after which sent messages that the fleet does not acknowledge need a person"""
MOST_SILENT = 5
"""publishers of silent topics that are shown, the longest silent first; then only a number"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that needs a person; `place` is the screen that says more, `row` its key."""

    severity: str
    subject: str
    words: str
    place: str
    row: str = ""


def findings(
    state: GatewayState, status: Answer, events: Answer, silent: Answer, now: float
) -> list[Finding]:
    """Return what needs a person. Without answers only the gateway's figures are used."""
    ahead = clock_ahead(status)
    there = now + ahead
    since = _since(events.rows())
    troubles, alarms = _troubles(status), {each.text for each in state.alarms.values()}
    found = [Finding("error", "gateway", each, "Events") for each in troubles if each not in alarms]
    survives = state.survives(status.document)
    found += [
        _uplink(each, state, survives, since.get(f"uplink {each.name}".strip()), there)
        for each in state.uplinks(status.document)
        if each.state in DOWN
        or (each.state == "connecting" and each.error)
        or each.unanswered >= UNANSWERED
    ]
    found += [_stuck(row) for row in status.rows("channels_stuck")]
    for name, alarm in state.alarms.items():
        since_when = "" if alarm.raised is None else f" · for {lasting(there - alarm.raised)}"
        grave = "error" if alarm.text in troubles else "warning"
        found.append(Finding(grave, name.replace("_", " "), alarm.text + since_when, "Events"))
    found += [_silent_bridge(row) for row in status.rows("silent")]
    found += _silent_topics(state, silent, now)
    found += [_event(row) for row in events.rows() if _goes_on(row, events)]
    found += _crash(events)
    if abs(ahead) >= CLOCKS_APART:
        apart = "ahead of" if ahead > 0 else "behind"
        words = f"{span(abs(ahead))} {apart} this machine's; times of events are by the gateway's"
        found.append(Finding("warning", "clock", words, "Events"))
    return sorted(found, key=lambda each: each.severity != "error")


def clock_ahead(status: Answer) -> float:
    """Return by how many seconds the gateway's clock is ahead of ours; 0 until it has answered."""
    sent = status.number("time")
    return 0.0 if sent is None or status.at is None else sent / 1_000 - status.at


def _lost(state: GatewayState) -> str:
    lost = state.lost
    if lost is None:
        return "losses not known"
    return f"{amount(lost)} lost" if lost else "nothing lost"


def _troubles(status: Answer) -> Sequence[str]:
    found = status.document.get("troubles")
    return [text(each) for each in found] if isinstance(found, list) else []


def _uplink(
    uplink: Uplink, state: GatewayState, survives: int | None, since: float | None, now: float
) -> Finding:
    paused = uplink.state == "paused"
    words = [_lasting("paused" if paused else "down", since, now, uplink.error)]
    if uplink.state == "connected":
        words = [f"connected, but nothing was acknowledged for {lasting(uplink.unanswered)}"]
    if uplink.waiting is not None:
        lost = _lost(state)
        words.append(
            f"{amount(uplink.waiting)} wait, {lost}" if uplink.waiting else "nothing waits"
        )
    if survives is not None:
        words.append(f"capacity for {outage(survives)}" if survives else "the outbox is full")
    if uplink.attempt is not None:
        words.append(f"next try in {span(uplink.attempt)}")
    grave = not paused and uplink.state != "connected"
    severity, row = "error" if grave else "warning", f"uplink {uplink.name}"
    return Finding(severity, uplink.called, " · ".join(words), "Queues", row)


def _stuck(row: Document) -> Finding:
    name = text(row.get("name"))
    depth, sent, consumers = (
        int(number(row.get(each)) or 0) for each in ("depth", "inflight", "consumers")
    )
    oldest = f"the oldest for {lasting(number(row.get('oldest_seconds')))}"
    if row.get("state") == "paused":
        words = f"paused: {amount(depth)} wait, {oldest}"
    elif not consumers:
        words = f"no consumer is subscribed: {amount(depth)} wait, {oldest}"
    elif sent:
        words = f"{amount(sent)} sent and not acknowledged, {amount(depth)} wait, {oldest}"
    else:
        words = f"no consumer receives them: {amount(depth)} wait, {oldest}"
    return Finding("warning", f"channel {name}", words, "Queues", f"channel {name}")


def _since(rows: Sequence[Document]) -> Mapping[str, float]:
    """Return when the outages that last began, by their subject."""
    return {
        text(row.get("subject")): began / 1_000
        for row in rows
        if row.get("kind") == "link"
        and row.get("until") is None
        and (began := number(row.get("time"))) is not None
    }


def brief(error: str) -> str:
    """Return why a link is down, without the address and the number of the error."""
    return ERRNO.sub("", error)


def event_words(row: Document, limit: int) -> str:
    """Return what an event says; of a start first its cause, then its version."""
    words = text(row.get("text"), limit)
    version, started, how = words.rpartition(" started")
    return f"started{how} · {version}" if started and row.get("kind") == "start" else words


def _lasting(word: str, begun: float | None, now: float, error: str) -> str:
    error = brief(error)
    words = word if begun is None else f"{word} {lasting(now - begun)}"
    return f"{words}: {error}" if error else words


def _silent_bridge(row: Document) -> Finding:
    kind, name, state, error = (text(row.get(key)) for key in ("kind", "name", "state", "error"))
    return Finding(
        "warning", name, f"{kind} bridge {state}" + (f": {error}" if error else ""),
        "Nodes", f"{kind} {name}",
    )  # fmt: skip


def silent_count(state: GatewayState, silent: Answer) -> int:
    """Return how many topics are silent, of those that the gateway remembers."""
    total = silent.number("total")
    return sum(each.silent for each in state.topics) if total is None else int(total)


def _silent_topics(state: GatewayState, silent: Answer, now: float) -> list[Finding]:
    """Return silent topics by their publisher, which is likelier to be silent than each of them."""
    topics = sorted(
        (each for each in state.topics if each.silent), key=lambda each: -(each.age(now) or 0.0)
    )
    groups: dict[str, list[Topic]] = {}
    for each in topics:
        groups.setdefault(each.publisher, []).append(each)
    shown = list(groups.values())[:MOST_SILENT]
    found = [_silent_group(each, now) for each in shown]
    more = silent_count(state, silent) - sum(map(len, shown))
    if more > 0:
        words = f"{amount(more)} more are silent"
        found.append(Finding("warning", "topics", words, "Topics"))
    return found


def _silent_group(topics: Sequence[Topic], now: float) -> Finding:
    last = min(topics, key=lambda each: each.age(now) or 0.0)
    words = f"silent {lasting(last.age(now))}"
    usual = last.interval
    if usual is not None:
        words += (
            f", usually every {usual:.0f}s" if usual >= 1 else ", usually more than one a second"
        )
    names = [text(each.name).removeprefix("sensors/") for each in topics]
    if len(topics) == 1:
        return Finding("warning", names[0], words, "Topics", last.name)
    some = ", ".join(sorted(names)[:3]) + (", …" if len(names) > 3 else "")
    words = f"{len(topics)} topics of it {words}: {some}"
    return Finding("warning", last.publisher, words, "Topics", last.name)


def _goes_on(row: Document, events: Answer) -> bool:
    """Return whether an event about a client needs a person and was repeated just now."""
    kind, until = text(row.get("kind")), number(row.get("until"))
    if kind not in REPEATED or (number(row.get("count")) or 1) < REPEATED[kind]:
        return False
    sent = events.number("time")
    return until is None or sent is None or sent - until < 1_000 * RECENT


def _crash(events: Answer) -> list[Finding]:
    """Return that the gateway restarted without having been stopped, for some time after it."""
    sent = events.number("time")
    starts = [row for row in events.rows() if row.get("kind") == "start"]
    crashes = [row for row in starts if row.get("severity") == "warning"]
    times = [number(row.get("time")) or 0.0 for row in crashes]
    if sent is None or not crashes or starts[0] is not crashes[0]:
        return []
    if sent - times[0] > 1_000 * CRASH_RECENT:
        return []
    lately = sum(sent - each < 1_000 * CRASHES_WITHIN for each in times)
    words = text(crashes[0].get("text")).partition(" after ")[2]
    words = f"started {lasting((sent - times[0]) / 1_000)} ago after {words}"
    if lately > 1:
        words += f" · {lately} times within the hour"
    return [Finding("warning", "gateway", words, "Events", str(crashes[0].get("id")))]


def _event(row: Document) -> Finding:
    kind, name = row.get("kind"), str(row.get("subject"))
    words, began = text(row.get("text")), number(row.get("time"))
    if kind == "refused":
        words = f"refused {words}"
    if (times := number(row.get("count")) or 1) > 1:
        words += f" · {amount(int(times))} times"
    if began is not None:
        words += f" since {time_of_day(began / 1_000)}"
    here = kind in ("shared", "flapping")
    place, key = ("Clients", name) if here else ("Events", str(row.get("id")))
    return Finding("warning", text(name), words, place, key)
