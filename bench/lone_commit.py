"""What does a commit cost that comes alone, by SQLite and the kernel?

    .venv/bin/python -m bench.lone_commit [SECONDS]

Commits a message and its deliveries at a pace, each as soon as it comes, with the gateway's pragmas
and nothing of its code; prints the processor time of a commit, without that of the waiting.
"""

import sqlite3
import sys
import tempfile
import time
from pathlib import Path

PACES = ((100, 1), (20, 25))
"""Messages a second, and sessions that are away: those of the kinds F_few and F_trickle."""

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE message (id INTEGER PRIMARY KEY, packet BLOB);
CREATE TABLE delivery (session INTEGER, sequence INTEGER, message INTEGER,
 PRIMARY KEY (session, sequence)) WITHOUT ROWID;
"""


def commit(database: sqlite3.Connection, number: int, sessions: int) -> None:
    """Commit one message for so many sessions."""
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO message VALUES (?, ?)", (number, b"x" * 80))
    rows = [(session, number, number) for session in range(sessions)]
    database.executemany("INSERT INTO delivery VALUES (?, ?, ?)", rows)
    database.execute("COMMIT")


def measure(folder: Path, pace: int, sessions: int, count: int) -> float:
    """Return the microseconds of processor time of a commit; of none if `sessions` is 0."""
    database = sqlite3.connect(folder / f"{pace}-{sessions}.db", isolation_level=None)
    database.executescript(SCHEMA)
    before = time.process_time()
    for number in range(count):
        time.sleep(1 / pace)
        if sessions:
            commit(database, number, sessions)
    used = time.process_time() - before
    database.close()
    return used / count * 1e6


def main(seconds: float) -> None:
    """Print a row for each pace."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        for pace, sessions in PACES:
            count = int(pace * seconds)
            idle = measure(Path(name), pace, 0, count)
            cost = measure(Path(name), pace, sessions, count) - idle
            print(f"{pace} a second, {sessions} deliveries: {cost:.0f} µs a commit")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
