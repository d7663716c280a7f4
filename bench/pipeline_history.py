"""What new rows cost the pipeline beside a short history and a long one, and a run without any.

    python -m bench.pipeline_history [--rows 1000000 30000000] [--batches 100000]
        [--files 2000000] [--gold]

A history of so many rows (20 gateways, a million rows a day) is written straight into silver and
the state. Then 10,000 rows of one gateway come: in order, late into a gap, and late with 200 known
keys. Printed are the CPU seconds of `once`, a process of its own, with Java and all workers. Then
comes a run with nothing new after so many batches of a landing file each, and one with so many
files known, of which the landing folder still has 20,000.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline.settings import Settings, make_settings
from pipeline.tables import delta, islands, on_disk, silver_numbers, state
from pipeline.tables.arrays import strings
from pipeline.tables.columns import BATCHES, FILES, SILVER, arrow_schema
from pipeline.tables.state import Commit, Mark, State
from pipeline.tables.task_files import NewFile

GATEWAYS = 20
OF_A_DAY = 50_000
"""Rows of a gateway; a row group of silver has so many."""
DAY_MS = 86_400_000
BEGIN = 1_763_683_200_000
"""2025-11-21 00:00 UTC."""
NEW = 10_000
KNOWN = 200
LISTED, LISTED_FOLDERS, KNOWN_FOLDERS = 20_000, 200, 4_000
"""Files that are still in the landing folder, the folders of these, and of all others."""
AT_ONCE = 50_000
EPOCH, STREAM = "00a1b2c3d4", "main"
SCHEMA = arrow_schema(SILVER)
ONCE = """
import os, sys
from pathlib import Path
from bench.pipeline import cpu_seconds
from pipeline.cli import main
assert main(["once", *sys.argv[1:]]) == 0
status = Path("/proc/self/status").read_text()  # `getrusage` has what the parent needed
print(cpu_seconds(os.getpid()), status.partition("VmHWM:")[2].split()[0])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="New rows beside a long history.")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 30_000_000])
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=2_000_000)
    parser.add_argument("--gold", action="store_true", help="make the gold tables, too")
    options = parser.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="bench-history-") as work:
            beside(Path(work), rows, gold=options.gold)
    if options.batches:
        with tempfile.TemporaryDirectory(prefix="bench-history-") as work:
            nothing_new(Path(work), options.batches, options.batches, options.batches)
    if options.files:
        with tempfile.TemporaryDirectory(prefix="bench-history-") as work:
            nothing_new(Path(work), options.files // 200, options.files, LISTED)
    print(time.strftime("%Y-%m-%d", time.gmtime()))


def beside(work: Path, rows: int, *, gold: bool) -> None:
    """Print what new rows cost beside a history of so many."""
    days = max(1, rows // (GATEWAYS * OF_A_DAY))
    settings = make_settings(work / "landing", work / "tables")
    (work / "landing").mkdir()
    middle = days * OF_A_DAY // 2
    gap = range(middle, middle + 2 * NEW)
    history(settings, days, gap)
    plain = () if gold else ("--no-gold",)
    end = days * OF_A_DAY
    once(settings, "--no-gold")  # Java's archive is written, where there is none
    for name, first in (("in order", end + 1), ("late", gap[0]), ("known", gap[0] + NEW - KNOWN)):
        land(work / "landing", range(first, first + NEW))
        print(
            f"| {name} | {rows:,} rows | {once(settings, *plain)[0]:.1f} CPU seconds |", flush=True
        )


def nothing_new(work: Path, batches: int, known: int, listed: int) -> None:
    """Print what a run costs that finds nothing new, with so many files known and in the folder."""
    settings = make_settings(work / "landing", work / "tables")
    on_disk.create(settings.tables)
    folders = LISTED_FOLDERS if known > listed else GATEWAYS
    names, marks = [], []
    for number in range(known):
        there = number < listed
        gateway = f"g{number % folders}" if there else f"h{number % KNOWN_FOLDERS}"
        name = f"{gateway}/{EPOCH}.{STREAM}.{number}-{number}.1.jsonl"
        mark = Mark(3, BEGIN * 1_000_000)
        if there:
            file = work / "landing" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("{}\n")
            mark = Mark(file.stat().st_size, file.stat().st_mtime_ns)
        names.append(name)
        marks.append(mark)
    size = known // batches
    for first in range(0, known, AT_ONCE):
        here = slice(first, first + AT_ONCE)
        columns = [
            strings(names[here]),
            *(pa.array(each) for each in zip(*marks[here], strict=True)),
        ]
        numbers = pa.array(np.arange(first, first + len(names[here])) // size + 1)
        rows = pa.Table.from_arrays([*columns, numbers], schema=arrow_schema(FILES))
        last = (first + len(names[here]) - 1) // size + 1
        delta.append_table(settings.tables / "files", rows, last)
    save(settings, [Commit(n, size, dict.fromkeys(state.TABLES, 0)) for n in range(1, batches + 1)])
    state.tidy(settings.tables, many=1)
    for _ in range(4):
        begun = time.monotonic()
        cpu, memory = once(settings)
        took = f"{cpu:.2f} CPU seconds, {time.monotonic() - begun:.2f} s, {memory} MiB"
        print(f"| nothing new | {batches:,} batches, {known:,} files | {took} |", flush=True)


def history(settings: Settings, days: int, gap: range) -> None:
    """Write silver and its state: a file a day, sorted by gateway and number, but for a gap."""
    on_disk.create(settings.tables)
    silver = settings.tables / "silver"
    commits = []
    for day in range(days):
        date = np.datetime64(BEGIN + day * DAY_MS, "ms").astype("datetime64[D]")
        found = islands.SCHEMA.empty_table()
        file = NewFile(settings.tables, "silver", SCHEMA)
        for gateway in range(GATEWAYS):
            seqs = np.arange(day * OF_A_DAY + 1, (day + 1) * OF_A_DAY + 1)
            rows = a_day(f"g{gateway}", seqs[(seqs < gap[0]) | (seqs > gap[-1])], day + 1)
            file.write(rows)
            found = pa.concat_tables([found, islands.islands_of(on_disk.with_ms(rows))])
        delta.commit(silver, [file.close()], batch=day + 1)
        counts = {"bronze": 0, "quarantine": 0, "silver": islands.numbers(found)}
        silver_numbers.add(settings.tables, islands.merged(found), day + 1)
        commits.append(Commit(day + 1, 0, counts, dates=(str(date),)))
    save(settings, commits)


def a_day(gateway: str, seqs: np.ndarray, batch: int) -> pa.Table:
    """Return silver's rows of a gateway's numbers."""
    times = pa.array(BEGIN + (seqs - 1) * DAY_MS // OF_A_DAY)
    same = {"gateway_id": gateway, "epoch": EPOCH, "stream": STREAM, "time_source": "gateway"}
    same |= {"node": "n1", "quantity": "t", "topic": "sensors/n1/t", "unit": "C"}
    made: dict[str, pa.Array] = {
        name: pa.repeat(pa.scalar(text), len(seqs)) for name, text in same.items()
    }
    made |= {"seq": pa.array(seqs), "event_time": times.cast(pa.timestamp("ms", tz="UTC"))}
    made |= {"time": times, "received": times, "line": pa.array(seqs)}
    made |= {"event_date": times.cast(pa.timestamp("ms")).cast(pa.date32())}
    made |= {"value": pa.array(seqs % 997 / 10), "batch": pa.array(np.full(len(seqs), batch))}
    columns = [
        made[field.name].cast(field.type) if field.name in made else pa.nulls(len(seqs), field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def save(settings: Settings, commits: Sequence[Commit]) -> None:
    """Let batches count that others follow."""
    last = commits[-1].batch
    State(settings.tables, compared=last, golden=last).note()
    rows = [state.row_of(each) for each in commits]
    found = pa.Table.from_pylist(rows, schema=arrow_schema(BATCHES))
    delta.append_table(settings.tables / "batches", found, last)


def land(landing: Path, seqs: range) -> None:
    """Write a landing file of these numbers of the first gateway."""
    name = f"{EPOCH}.{STREAM}.{seqs[0]}-{seqs[-1]}.{len(seqs)}.jsonl"
    (landing / "g0").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record(seq)) + "\n" for seq in seqs)
    (landing / "g0" / name).write_text(lines, encoding="utf-8")


def record(seq: int) -> dict[str, object]:
    moment = BEGIN + (seq - 1) * DAY_MS // OF_A_DAY
    payload = json.dumps({"value": seq % 997 / 10, "unit": "C"})
    return {
        "gateway_id": "g0", "epoch": EPOCH, "stream": STREAM, "seq": seq, "time": moment,
        "received": moment + 120, "topic": "sensors/n1/t",
        "payload": b64encode(payload.encode()).decode(),
    }  # fmt: skip


def once(settings: Settings, *options: str) -> tuple[float, int]:
    """Run the command; return the CPU seconds of it and all that it starts, and its MiB at most."""
    folders = "--landing", str(settings.landing), "--tables", str(settings.tables)
    command = [sys.executable, "-c", ONCE, *folders, *options]
    cpu, memory = subprocess.check_output(command, text=True).splitlines()[-1].split()
    return float(cpu), int(memory) // 1024


if __name__ == "__main__":
    main()
