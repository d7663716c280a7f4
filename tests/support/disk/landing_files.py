"""Landing files by the contract: records, lines, names and the way they are put in place."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path

GATEWAY = "barn"
EPOCH = "00a1b2c3d4"
TIME = 1_763_740_000_000
"""Milliseconds: 2025-11-21 15:46:40 UTC."""


class _Absent:
    """Stands for a field that a record does not have."""


ABSENT = _Absent()


def reading(value: object = 21.5, **more: object) -> bytes:
    """Return the payload of a reading."""
    return json.dumps({"value": value} | more).encode()


def record(
    seq: object = 1, content: bytes = b'{"value": 21.5}', **changes: object
) -> dict[str, object]:
    """Return a record with all fields that a gateway writes, but for the changes."""
    fields: dict[str, object] = {
        "gateway_id": GATEWAY,
        "epoch": EPOCH,
        "stream": "main",
        "seq": seq,
        "time": TIME,
        "received": TIME + 120,
        "topic": "sensors/n1/temperature",
        "payload": base64.b64encode(content).decode(),
        "qos": 1,
        "retain": False,
        "resent": False,
        "content_type": None,
        "properties": [["site", "A"]],
    }
    return {name: value for name, value in (fields | changes).items() if value is not ABSENT}


def text_of(entries: Iterable[object]) -> bytes:
    """Return the entries as lines; an entry of bytes stands for itself."""
    return b"".join(
        (entry if isinstance(entry, bytes) else json.dumps(entry).encode()) + b"\n"
        for entry in entries
    )


def name_for(
    lines: int, first: int = 1, last: int | None = None, epoch: str = EPOCH, stream: str = "main"
) -> str:
    """Return the name of a landing file that holds so many lines."""
    return f"{epoch}.{stream}.{first}-{last or first + lines - 1}.{lines}.jsonl"


def put(landing: Path, content: bytes, name: str, gateway: str = GATEWAY) -> Path:
    """Put a landing file in place as a gateway does, and return its path."""
    folder = landing / gateway
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{name}.tmp"
    temporary.write_bytes(content)
    return temporary.rename(folder / name)


def put_records(
    landing: Path, entries: list[object], first: int = 1, gateway: str = GATEWAY
) -> Path:
    """Put a landing file of these entries in place under the name that their number asks for."""
    return put(landing, text_of(entries), name_for(len(entries), first), gateway)
