"""`tidegate uplink`: pause, resume, confirm, and messages that the fleet rejected."""

import argparse
import base64
import json
import queue
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import paho.mqtt.client as paho

from gateway.app.uplink.headroom import spell_seconds
from gateway.cli.control_request import Conversation, ask_gateway
from gateway.cli.local_broker import LocalBroker
from gateway.cli.operate import table
from gateway.errors import TidegateError

VERBS = ("list", "show", "retry", "drop")
ALL = "all"
COLUMNS = ("number", "uplink", "cause", "bytes", "rejected", "topic")

Entry = dict[str, Any]


def command_rejected(broker: LocalBroker, options: argparse.Namespace) -> int:
    """Execute the command for rejected messages; raise TidegateError."""
    verb, *numbers = options.words or ["list"]
    if verb not in VERBS:
        raise TidegateError(f"uplink rejected {verb}: there are {', '.join(VERBS)}")
    if verb != "list" and not numbers:
        raise TidegateError(f"uplink rejected {verb} needs numbers as the list has them, or {ALL}")
    request = {
        "do": verb,
        "numbers": ALL if not numbers or numbers == [ALL] else numbers,
        "uplink": options.uplink,
    }
    found: list[Entry] = []
    count = 0
    with Conversation(broker) as conversation:
        for answer in conversation.answers("rejected", request):
            found += answer.get("rejected", ())
            count = answer.get("count", 0)
    if options.json:
        print(json.dumps(found if verb in ("list", "show") else {verb: count}, indent=2))
    elif verb == "list":
        print("\n".join(rejected_table(found)) if found else "no message is rejected")
    elif verb == "show":
        print("\n\n".join("\n".join(lines(each)) for each in found))
    else:
        print(f"{count} {'put back into the outbox' if verb == 'retry' else 'deleted'}")
    return 0


def rejected_table(found: Sequence[Entry]) -> list[str]:
    """Return rejected messages as rows, without `uplink` where there is one."""
    columns = [each for each in COLUMNS if each != "uplink" or any(row["uplink"] for row in found)]
    return table([columns, *([_cell(entry, each) for each in columns] for entry in found)])


def lines(entry: Entry) -> list[str]:
    """Return all of a rejected message, for people."""
    message = {**entry, "time": _time(entry["time"]), "rejected_at": _time(entry["rejected_at"])}
    payload = base64.b64decode(message.pop("payload"))
    message = {name: value for name, value in message.items() if value not in (None, "", [])}
    return [
        *(f"{name.replace('_', ' '):16}{value}" for name, value in message.items()),
        f"{'payload':16}{payload.decode('utf-8', 'backslashreplace')}",
    ]


def _cell(entry: Entry, column: str) -> str:
    if column == "rejected":
        return _time(entry["rejected_at"])
    return f"{entry[column]:,}" if column == "bytes" else str(entry[column])


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def command_uplink(broker: LocalBroker, action: str, name: str | None = None) -> int:
    """Publish the action and wait for its PUBACK; raise TidegateError.

    Without a `name` it is for every uplink.
    """
    part, which = ("uplink", "") if name is None else (f"uplink/{name}", f" {name}")
    if action == "retained":
        ask_gateway(broker, part, action, f"did not send retained messages of its uplink{which}")
    else:
        refused = f"did not {action} its uplink{which}"
        ask_gateway(broker, part, action, refused, reason="there is none")
    print(f"uplink{which}: {action}")
    return 0


def command_confirm(broker: LocalBroker, name: str | None) -> int:
    """Tell the gateway that this board keeps its identity; raise TidegateError."""
    if name is not None:
        raise TidegateError(f"uplink confirm is for the whole gateway and takes no name: {name}")
    ask_gateway(broker, "identity", "confirm", "did not confirm its identity")
    print("uplink: this board has the gateway's identity")
    return 0


PREFIX = "$SYS/broker/tidegate/"
FILTERS = (f"{PREFIX}uplink/#", f"{PREFIX}outbox/#")
STATE = "uplink/state"

ANSWER_TIMEOUT = 10.0
"""Seconds to wait for the first figure."""

SETTLED = 0.5
"""Seconds without a further figure after which all were received: they are retained messages."""

DOWN = 1
"""The exit status if the link is not up."""

Figures = dict[str, int | float | str]


def command_uplink_status(broker: LocalBroker, name: str | None = None, *, as_json: bool) -> int:
    """Print the state of the uplinks; return 0 if they are up, 1 if not; raise TidegateError.

    With a `name` it is the state of that one.
    """
    found = figures(broker, FILTERS, STATE)
    state = found.get(STATE if name is None else f"uplink/{name}/state")
    if state is None:
        names = ", ".join(uplink_names(found)) or "none with a name"
        raise TidegateError(f"the gateway at {broker.name} has no uplink {name}; there are {names}")
    if as_json:
        print(json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False))
    elif name is not None:
        print("\n".join(lines_of(found, name)))
    else:
        print("\n".join(status_lines(found)))
    return 0 if state == "connected" else DOWN


def figures(broker: LocalBroker, topic_filters: Sequence[str], awaited: str) -> Figures:
    """Return the figures below `$SYS/broker/tidegate/` that these match, by name.

    Raises TidegateError without the one that is `awaited`, which always exists.
    """
    figures_queue: queue.SimpleQueue[tuple[str, bytes] | str] = queue.SimpleQueue()

    def on_connect(client: paho.Client, _data: Any, _flags: Any, code: Any, _more: Any) -> None:
        if code.is_failure:
            figures_queue.put(str(code))
        else:
            client.subscribe([(each, 0) for each in topic_filters])

    def on_subscribe(_client: paho.Client, _data: Any, _mid: int, codes: Any, _more: Any) -> None:
        for each, code in zip(topic_filters, codes, strict=False):
            if code.is_failure:
                figures_queue.put(f"it refuses {each!r}: {code}")

    def on_message(_client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        figures_queue.put((message.topic.removeprefix(PREFIX), bytes(message.payload)))

    client = broker.connect()
    client.on_connect, client.on_message = on_connect, on_message
    client.on_subscribe = on_subscribe
    client.loop_start()
    try:
        found = collect(figures_queue, awaited)
    finally:
        client.disconnect()
        client.loop_stop()
    if awaited in found:
        return found
    problem = found.get("", f"no figures within {ANSWER_TIMEOUT:.0f} s")
    raise TidegateError(f"the gateway at {broker.name} does not publish its state: {problem}")


def status_lines(found: Figures) -> list[str]:
    """Return the figures for people."""
    rows, size = int(found.get("outbox/rows", 0)), int(found.get("outbox/bytes", 0))
    shown = []
    for name in uplink_names(found):
        shown += [f"uplink        {name}", *(f"  {line}" for line in lines_of(found, name)), ""]
    if not shown:
        shown = _state(found, "uplink/")
    oldest = f", the oldest for {_spelled(found, 'outbox/oldest_seconds')}" if rows else ""
    shown.append(f"waiting       {rows:,} messages, {size / 1e6:.1f} MB{oldest}")
    if rejected := int(found.get("uplink/rejected", 0)):
        shown.append(f"rejected      {rejected:,} messages: see `tidegate uplink rejected list`")
    shown += [_counts(found, "uplink/"), *_down(found, "uplink/")]
    if "uplink/budget" in found:
        used, budget = int(found.get("uplink/budget_used", 0)), int(found["uplink/budget"])
        shown.append(f"budget        {used / 1e6:.1f} of {budget / 1e6:.1f} MB used today")
    if "outbox/survives_seconds" in found:
        shown.append(f"survives      an outage of {_spelled(found, 'outbox/survives_seconds')}")
    return shown


def uplink_names(found: Mapping[str, object]) -> list[str]:
    """Return the names of several uplinks, none where there is one."""
    levels = [name.split("/") for name in found]
    return sorted(
        each[1] for each in levels if len(each) == 3 and each[0::2] == ["uplink", "state"]
    )


def lines_of(found: Figures, name: str) -> list[str]:
    """Return the state of one of several uplinks, for people."""
    part = f"uplink/{name}/"
    waiting = f"waiting       {int(found.get(part + 'waiting', 0)):,} messages"
    return [*_state(found, part), waiting, _counts(found, part), *_down(found, part)]


def _state(found: Figures, part: str) -> list[str]:
    error, destination = found.get(f"{part}error"), found.get(f"{part}destination")
    shown = [f"state         {found[f'{part}state']}" + (f": {error}" if error else "")]
    if found.get(f"{part}next_attempt_seconds"):
        shown.append(f"next try      in {_spelled(found, f'{part}next_attempt_seconds')}")
    return [*shown, f"destination   {destination}"] if destination else shown


def _counts(found: Figures, part: str) -> str:
    counts = [(name, int(found.get(f"{part}{name}", 0))) for name in COUNTS]
    return "since start   " + ", ".join(f"{count:,} {name}" for name, count in counts)


def _down(found: Figures, part: str) -> list[str]:
    counts = [(words, int(found.get(f"{part}{name}", 0))) for name, words in DOWN_COUNTS.items()]
    if not any(count for _, count in counts):
        return []
    return ["from fleet    " + ", ".join(f"{count:,} {words}" for words, count in counts)]


DOWN_COUNTS = {"down": "published", "down_dropped": "dropped", "down_too_large": "too large"}

COUNTS = ("sent", "acknowledged", "resent", "refused", "reconnects")


def collect(figures_queue: "queue.SimpleQueue[tuple[str, bytes] | str]", awaited: str) -> Figures:
    """Return the received figures once no more arrive; a refusal has an empty name."""
    found: Figures = {}
    with suppress(queue.Empty):
        while True:
            figure = figures_queue.get(timeout=SETTLED if awaited in found else ANSWER_TIMEOUT)
            if isinstance(figure, str):
                return {"": figure}
            name, payload = figure
            if payload:
                found[name] = _value(payload.decode("utf-8", "replace"))
            else:
                found.pop(name, None)  # its subject has ended meanwhile
    return found


def _value(text: str) -> int | float | str:
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _spelled(found: Figures, name: str) -> str:
    return spell_seconds(float(found.get(name, 0)))
