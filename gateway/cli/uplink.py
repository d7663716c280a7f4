"""`tidegate uplink`: pause, resume, confirm, and messages that the fleet rejected."""

import argparse
import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

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
    ask_gateway(broker, part, action, f"did not {action} its uplink{which}")
    print(f"uplink{which}: {action}")
    return 0


def command_confirm(broker: LocalBroker, name: str | None) -> int:
    """Tell the gateway that this board keeps its identity; raise TidegateError."""
    if name is not None:
        raise TidegateError(f"uplink confirm is for the whole gateway and takes no name: {name}")
    ask_gateway(broker, "identity", "confirm", "did not confirm its identity")
    print("uplink: this board has the gateway's identity")
    return 0
