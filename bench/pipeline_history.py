"""What new rows cost the pipeline beside a short history and a long one, and a run without any.

    python -m bench.pipeline_history [--rows 1000000 30000000] [--batches 100000] [--gold]

A history of so many rows (20 gateways, a million rows a day) is written straight into silver and
the state. Then 10,000 rows of one gateway come: in order, late into a gap, and late with 200 known
keys. Printed are the CPU seconds of `once`, a process of its own, with Java and all workers. Then
comes a run with nothing new after so many batches of a landing file each.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline.settings import Settings, make_settings
from pipeline.tables import delta, islands, on_disk, state
from pipeline.tables.columns import SILVER, arrow_schema
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
EPOCH, STREAM = "00a1b2c3d4", "main"
SCHEMA = arrow_schema(SILVER)
ONCE = """
import os, sys
from bench.pipeline import cpu_seconds
from pipeline.cli import main
assert main(["once", *sys.argv[1:]]) == 0
print(cpu_seconds(os.getpid()))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="New rows beside a long history.")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 30_000_000])
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--gold", action="store_true", help="make the gold tables, too")
    options = parser.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="bench-history-") as work:
            beside(Path(work), rows, gold=options.gold)
    if options.batches:
        with tempfile.TemporaryDirectory(prefix="bench-history-") as work:
            nothing_new(Path(work), options.batches)
    print(time.strftime("%Y-%m-%d", time.gmtime()))


def beside(work: Path, rows: int, *, gold: bool) -> None:
    """Print what new rows cost beside a history of so many."""
    days = max(1, rows // (GATEWAYS * OF_A_DAY))
    settings = make_settings(work / "landing", work / "tables")
    middle = days * OF_A_DAY // 2
    gap = range(middle, middle + 2 * NEW)
    history(settings, days, gap)
    plain = () if gold else ("--no-gold",)
    end = days * OF_A_DAY
    once(settings, "--no-gold")  # Java's archive is written, where there is none
    for name, first in (("in order", end + 1), ("late", gap[0]), ("known", gap[0] + NEW - KNOWN)):
        land(work / "landing", range(first, first + NEW))
        print(f"| {name} | {rows:,} rows | {once(settings, *plain):.1f} CPU seconds |", flush=True)


def nothing_new(work: Path, batches: int) -> None:
    """Print what a run costs that finds nothing new after so many batches of a file each."""
    settings = make_settings(work / "landing", work / "tables")
    known = State()
    commits = []
    for batch in range(1, batches + 1):
        name = f"g{batch % GATEWAYS}/{EPOCH}.{STREAM}.{batch}-{batch}.1.jsonl"
        file = work / "landing" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}\n")
        mark = Mark(file.stat().st_size, file.stat().st_mtime_ns)
        island = islands.Island(f"g{batch % GATEWAYS}", EPOCH, STREAM, batch, batch, 0, 0)
        rows = dict.fromkeys(state.TABLES, 0)
        commits.append(Commit(batch, {name: mark}, rows, {}, (island,), ()))
    known.add(*commits)
    save(settings, known)
    once(settings)
    for _ in range(3):
        begun = time.monotonic()
        cpu, wall = once(settings), time.monotonic() - begun
        print(f"| nothing new | {batches:,} batches | {cpu:.2f} CPU seconds, {wall:.2f} s |")


def history(settings: Settings, days: int, gap: range) -> None:
    """Write silver and its state: a file a day, sorted by gateway and number, but for a gap."""
    on_disk.create(settings.tables)
    silver = settings.tables / "silver"
    known = State()
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
        known.add(Commit(day + 1, {}, counts, {}, tuple(islands.each(found)), (str(date),)))
    save(settings, known)


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


def save(settings: Settings, known: State) -> None:
    settings.checkpoints.mkdir(parents=True, exist_ok=True)
    on_disk.create(settings.tables)
    known.compared = known.golden = known.last
    state.note_derived(settings.checkpoints, known)
    state.fold(settings.checkpoints, known)


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


def once(settings: Settings, *options: str) -> float:
    """Run the command; return the CPU seconds of it and of all that it starts."""
    folders = "--landing", str(settings.landing), "--tables", str(settings.tables)
    command = [sys.executable, "-c", ONCE, *folders, *options]
    return float(subprocess.check_output(command, text=True).splitlines()[-1])


if __name__ == "__main__":
    main()
