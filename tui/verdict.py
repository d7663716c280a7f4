"""What needs a person, the worst first: cause, since when, and how long it can last."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tui.figures import uplink_prefix
from tui.queries import Answer, Document, number, text
from tui.state import GatewayState
from tui.text import amount, lasting, outage

ERRNO = re.compile(r"^\S+: \[Errno -?\d+\] ")


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
    """Return what needs a person. Without answers the gateway's figures alone must do."""
    since = _since(events.rows())
    troubles, alarms = _troubles(status), {each.text for each in state.alarms.values()}
    found = [Finding("error", "gateway", each, "Events") for each in troubles if each not in alarms]
    uplinks = _from_status(status) if status.at is not None else _from_figures(state)
    room = number(status.document.get("survives_seconds"))
    for name, told, error, waiting in uplinks:
        if told in ("disconnected", "paused") or (told == "connecting" and error):
            begun = since.get(f"uplink {name}" if name else "uplink")
            words = [_lasting("paused" if told == "paused" else "down", begun, now, error)]
            if waiting is not None:
                words.append(
                    f"{amount(waiting)} wait, {_lost(state)}" if waiting else "nothing waits"
                )
            if room is not None:
                words.append(f"room for {outage(int(room))}" if room else "no room left")
            grave = "warning" if told == "paused" else "error"
            row = f"uplink {name}"
            found.append(Finding(grave, name or "uplink", " · ".join(words), "Queues", row))
    for name, alarm in state.alarms.items():
        since_when = "" if alarm.raised is None else f" · for {lasting(now - alarm.raised)}"
        grave = "error" if alarm.text in troubles else "warning"
        found.append(Finding(grave, name.replace("_", " "), alarm.text + since_when, "Events"))
    found += [_silent_bridge(row) for row in status.rows("silent")]
    found += [_silent_topic(row) for row in silent.rows()]
    found += [_event(row) for row in events.rows() if _is_open_event(row)]
    return sorted(found, key=lambda each: each.severity != "error")


def _lost(state: GatewayState) -> str:
    lost = state.lost
    return f"{amount(lost)} lost" if lost else "nothing lost"


def _troubles(status: Answer) -> Sequence[str]:
    found = status.document.get("troubles")
    return [text(each) for each in found] if isinstance(found, list) else []


def _from_status(status: Answer) -> list[tuple[str, str, str, int | None]]:
    return [
        (
            text(row.get("name")),
            text(row.get("state")),
            text(row.get("error")),
            int(number(row.get("waiting")) or 0),
        )
        for row in status.rows("uplinks")
    ]


def _from_figures(state: GatewayState) -> list[tuple[str, str, str, int | None]]:
    found = []
    for name in state.figures.uplinks():
        begin = uplink_prefix(name)
        waiting = state.figures.count(begin + "waiting" if name else "tidegate/outbox/rows")
        word = state.figures.word
        found.append((name, word(begin + "state"), word(begin + "error"), waiting))
    return found


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


def _silent_topic(row: Document) -> Finding:
    usual = number(row.get("interval_seconds"))
    words = f"silent {lasting(number(row.get('silent_seconds')))}"
    if usual is not None:
        words += (
            f", usually every {usual:.0f}s" if usual >= 1 else ", usually more than one a second"
        )
    name = str(row.get("topic"))
    return Finding("warning", text(name).removeprefix("sensors/"), words, "Topics", name)


def _is_open_event(row: Document) -> bool:
    return row.get("until") is None and row.get("kind") in ("shared", "flapping")


def _event(row: Document) -> Finding:
    name = str(row.get("subject"))
    return Finding("warning", text(name), text(row.get("text")), "Clients", name)
