"""What a killed gateway's database says of its numbers, beside what the fleet has and was told."""

import json
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from gateway.mqtt.packets import Publish
from gateway.storage.engine.database import FILE_NAME

Number = tuple[str, str, int]
"""Epoch, stream and number."""


def check_ledger(data: Path, scratch: Path, fleet: Iterable[Publish]) -> int:
    """Return how many numbers are on disk; raise AssertionError unless each has one place.

    A number up to the last one on disk waits in the outbox or ended in the ledger, and not both;
    one that left the ledger was told to the fleet. What is called delivered is with the fleet.
    """
    arrived, reported = _at_fleet(fleet)
    scratch.mkdir()
    for file in data.glob(f"{FILE_NAME}*"):  # SQLite would take the log into what it opens
        if not file.name.endswith("-shm"):
            shutil.copyfile(file, scratch / file.name)
    with closing(sqlite3.connect(scratch / FILE_NAME)) as database:
        waiting = set(database.execute("SELECT epoch, stream, seq FROM outbox"))
        ended = {
            (epoch, stream, number): outcome
            for epoch, stream, first, last, outcome in database.execute(
                "SELECT epoch, stream, first, last, outcome FROM ledger"
            )
            for number in range(first, last + 1)
        }
        given = {
            (epoch, stream, number)
            for epoch, last in database.execute("SELECT epoch, last FROM starts")
            for stream, highest in json.loads(last).items()
            for number in range(1, highest + 1)
        }
    shutil.rmtree(scratch)
    assert not waiting & ended.keys()
    assert waiting | ended.keys() <= given
    assert given <= waiting | ended.keys() | reported
    assert {number for number, outcome in ended.items() if outcome == "delivered"} <= arrived
    return len(given)


def _at_fleet(fleet: Iterable[Publish]) -> tuple[set[Number], set[Number]]:
    """Return the numbers that have arrived, and those of which the fleet was told."""
    arrived, reported = set[Number](), set[Number]()
    for publish in fleet:
        if "/data/" in publish.topic:
            epoch, stream, number = dict(publish.properties.user_properties)["seq"].split(".")
            arrived.add((epoch, stream, int(number)))
        elif publish.topic.endswith("/ledger"):
            entry = json.loads(publish.payload)
            for first, last, _, _ in entry["ranges"]:
                numbers = range(first, last + 1)
                reported.update((entry["epoch"], entry["stream"], number) for number in numbers)
    return arrived, reported
