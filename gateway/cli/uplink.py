"""`tidegate uplink`: pause, resume, and what the fleet rejected."""

import argparse
import base64
import json
import queue
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.cli.control_request import CONTROL, PATIENCE, ask_gateway
from gateway.cli.local_broker import LocalBroker
from gateway.errors import TidegateError

VERBS = ("list", "show", "retry", "drop")
ALL = "all"
ANSWERS = "$CONTROL/answers/"
COLUMNS = ("number", "uplink", "cause", "bytes", "rejected", "topic")

Entry = dict[str, Any]


def command_rejected(broker: LocalBroker, options: argparse.Namespace) -> int:
    """Do what the command line says with rejected messages; raise TidegateError."""
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
    for answer in answers(broker, request):
        found += answer.get("rejected", ())
        count = answer.get("count", 0)
    if options.json:
        print(json.dumps(found if verb in ("list", "show") else {verb: count}, indent=2))
    elif verb == "list":
        print("\n".join(table(found)) if found else "no message is rejected")
    elif verb == "show":
        print("\n\n".join("\n".join(lines(each)) for each in found))
    else:
        print(f"{count} {'put back into the outbox' if verb == 'retry' else 'deleted'}")
    return 0


def answers(broker: LocalBroker, request: dict[str, object]) -> Iterator[Entry]:
    """Ask a running gateway; yield its answers; raise TidegateError if it has none or refuses."""
    heard: queue.SimpleQueue[Entry] = queue.SimpleQueue()
    topic = ANSWERS + uuid.uuid4().hex
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call] # paho has no type
    properties.ResponseTopic = topic

    def fail(code: object) -> None:
        heard.put({"done": True, "error": str(code)})

    def on_connect(client: paho.Client, _data: Any, _flags: Any, code: Any, _more: Any) -> None:
        if code.is_failure:
            fail(code)
        else:
            client.subscribe(topic, 1)

    def on_subscribe(client: paho.Client, _data: Any, _mid: int, codes: Any, _more: Any) -> None:
        if codes[0].is_failure:
            fail(codes[0])
        else:
            payload = json.dumps(request)
            client.publish(f"{CONTROL}rejected", payload, qos=1, properties=properties)

    def on_publish(_client: paho.Client, _data: Any, _mid: int, code: Any, _more: Any) -> None:
        if code.is_failure:
            fail(code)

    def on_message(_client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        heard.put(json.loads(message.payload))

    client = broker.connect()
    client.on_connect, client.on_subscribe = on_connect, on_subscribe
    client.on_publish, client.on_message = on_publish, on_message
    client.loop_start()
    try:
        yield from _until_done(broker, heard)
    finally:
        client.disconnect()
        client.loop_stop()


def _until_done(broker: LocalBroker, heard: "queue.SimpleQueue[Entry]") -> Iterator[Entry]:
    while True:
        try:
            answer = heard.get(timeout=PATIENCE)
        except queue.Empty:
            answer = {"error": f"no answer within {PATIENCE:.0f} s"}
        if "error" in answer:
            raise TidegateError(f"the gateway at {broker.url} refused: {answer['error']}")
        yield answer
        if "done" in answer:
            return


def table(found: Sequence[Entry]) -> list[str]:
    """Return rejected messages as rows, without `uplink` where there is one."""
    columns = [each for each in COLUMNS if each != "uplink" or any(row["uplink"] for row in found)]
    rows = [[_cell(entry, each) for each in columns] for entry in found]
    rows.insert(0, columns)
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def lines(entry: Entry) -> list[str]:
    """Return all of a rejected message as a person reads it."""
    told = {**entry, "time": _time(entry["time"]), "rejected_at": _time(entry["rejected_at"])}
    payload = base64.b64decode(told.pop("payload"))
    told = {name: value for name, value in told.items() if value not in (None, "", [])}
    return [
        *(f"{name.replace('_', ' '):16}{value}" for name, value in told.items()),
        f"{'payload':16}{payload.decode('utf-8', 'backslashreplace')}",
    ]


def _cell(entry: Entry, column: str) -> str:
    if column == "rejected":
        return _time(entry["rejected_at"])
    return f"{entry[column]:,}" if column == "bytes" else str(entry[column])


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def command_uplink(broker: LocalBroker, action: str, name: str | None = None) -> int:
    """Publish the action and wait until the gateway has taken it; raise TidegateError.

    Without a `name` it is for every uplink.
    """
    part, which = ("uplink", "") if name is None else (f"uplink/{name}", f" {name}")
    ask_gateway(broker, part, action, f"did not {action} its uplink{which}")
    print(f"uplink{which}: {action}")
    return 0
