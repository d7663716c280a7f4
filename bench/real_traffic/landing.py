"""What a gateway has written for the fleet into a directory."""

import json
import time
from pathlib import Path

WAIT_SECONDS = 60.0
STEP_SECONDS = 0.2


def records_in(folder: Path, expected: int) -> int:
    """Return how many different messages are in it, as soon as all that are expected are there."""
    counted: dict[Path, int] = {}
    deadline = time.monotonic() + WAIT_SECONDS
    while sum(counted.values()) < expected and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)
        for file in folder.glob("*/*.jsonl"):
            if file not in counted:  # each is put there when it is whole
                counted[file] = len(_numbers(file))
    return len({number for file in counted for number in _numbers(file)})


def _numbers(file: Path) -> set[tuple[str, str, int]]:
    records = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {(record["epoch"], record["stream"], record["seq"]) for record in records}
