"""The pipeline beside bare PySpark on the same JSON lines, in processes of their own.

    python -m bench.pipeline [--rows 100000] [--rounds 3] [--no-archives]

Prints CPU seconds and rows for each CPU second of `once` (bronze, silver and ledger, without gold)
and of a script that reads the lines with a schema, writes them as Parquet, drops duplicates and
decodes the readings into a second table. Both are measured cold, as a whole process, and warm: the
same work once more into other tables, in a Spark session that has done it before, as `run` has.
Gold of the warm tables is measured after that, in the same process. They take turns. Java has the
same options in both, and starts with an archive of the classes that the program itself loads, which
a run before the first round wrote, as all runs of `once` but a machine's first do; `first` is that
run. With --no-archives neither has one.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path

FILE_LINES = 10_000
BEGIN = 1_763_740_000_000
TICKS = os.sysconf("SC_CLK_TCK")

BARE = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
spark = (SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    .config("spark.driver.extraJavaOptions", SHORT_RUN + " " + archive_of(sys.argv[3]))
    .config("spark.sql.session.timeZone", "UTC").getOrCreate())
def work(landing, tables):
    rows = spark.read.schema(SCHEMA).json(landing + "/*/*.jsonl")
    rows = rows.withColumn("payload", F.unbase64("payload"))
    rows.write.parquet(tables + "/bronze")
    key = ["gateway_id", "epoch", "stream", "seq"]
    bronze = spark.read.parquet(tables + "/bronze").dropDuplicates(key)
    value = F.from_json(F.col("payload").cast("string"), "value double, unit string, time bigint")
    silver = bronze.withColumn("reading", value).select(*key, "topic",
        F.timestamp_millis("time").alias("event_time"), "reading.value", "reading.unit")
    silver = silver.withColumn("event_date", F.to_date("event_time"))
    silver.write.partitionBy("event_date").parquet(tables + "/silver")
def gold(landing, tables):
    pass
java = spark.sparkContext._gateway.proc
"""
ONCE = """
from functools import cache, partial
from pathlib import Path
from pipeline.operation.once import How, run_once
from pipeline.operation.session import open_session
from pipeline.settings import make_settings
cache_folder = Path(sys.argv[3]) if sys.argv[3] else None
settings = make_settings(tables=Path(sys.argv[2], "cold"), cache=cache_folder)
session = cache(lambda: open_session(settings))
def work(landing, tables):
    run_once(make_settings(Path(landing), Path(tables)), session, How(gold=False))
def gold(landing, tables):
    run_once(make_settings(Path(landing), Path(tables)), session)
java = None
"""
TWICE = """
import os, sys
from bench.pipeline import SCHEMA, archive_of, cpu_seconds
from pipeline.operation.session import SHORT_RUN
{work}
work(sys.argv[1], sys.argv[2] + "/cold")
cold = cpu_seconds(os.getpid())
work(sys.argv[1], sys.argv[2] + "/warm")
both = cpu_seconds(os.getpid())
gold(sys.argv[1], sys.argv[2] + "/warm")
print(cold, both - cold, cpu_seconds(os.getpid()) - both, flush=True)
if java is not None:  # and let it write its archive, as the command does
    java.stdin.close()
    java.wait()
"""
SCHEMA = (
    "gateway_id string, epoch string, stream string, seq bigint, time bigint, received bigint,"
    " topic string, payload string, qos int, retain boolean, resent boolean, content_type string,"
    " properties array<array<string>>"
)


def main() -> None:
    parser = argparse.ArgumentParser(description="The pipeline beside bare PySpark.")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-archives", action="store_true")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="bench-pipeline-"))
    found: dict[str, list[tuple[float, ...]]] = {"bare": [], "once": []}
    try:
        land(work / "landing", options.rows)
        programs = {"bare": BARE, "once": ONCE}
        archives = {name: "" if options.no_archives else f"{work}/archive-{name}" for name in found}
        for name, program in programs.items():
            first = cold_and_warm(program, work / "landing", work / "first", archives[name])
            shutil.rmtree(work / "first", ignore_errors=True)
            print(f"first {name}: {first[0]:.1f} and {first[1]:.1f} CPU seconds, cold and warm")
        for _ in range(options.rounds):
            for name, program in programs.items():
                tables = work / name
                done = cold_and_warm(program, work / "landing", tables, archives[name])
                found[name].append(done)
                shutil.rmtree(work / name, ignore_errors=True)  # Java may be ending
        report(found, options.rows)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def archive_of(folder: str) -> str:
    """Return how Java uses the archive of classes in a folder, or writes it if there is none."""
    if not folder:
        return ""
    file = Path(folder, "bare.jsa")
    file.parent.mkdir(exist_ok=True)
    if file.exists():
        return f"-XX:SharedArchiveFile={file}"
    return f"-XX:ArchiveClassesAtExit={file} -Xlog:cds=off -Xlog:cds+dynamic=off"


def cold_and_warm(program: str, landing: Path, tables: Path, archive: str) -> tuple[float, ...]:
    """Return the CPU seconds of a process until its work is done, the same once more, and gold."""
    text = TWICE.format(work=program)
    arguments = [sys.executable, "-c", text, str(landing), str(tables), archive]
    ended = subprocess.run(
        arguments, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return tuple(map(float, ended.stdout.split()))


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process, of those that it started, and of those that ended.

    Processes may end while they are counted, and their time then stands with who waited for
    them: it is counted again.
    """
    while True:
        try:
            return _counted(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue


def _counted(pid: int) -> float:
    children = f"/proc/{pid}/task/{{}}/children"
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    total = sum(map(int, fields[11:15])) / TICKS
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in Path(children.format(task.name)).read_text().split():
            total += _counted(int(child))
    return total


def land(landing: Path, rows: int) -> None:
    """Write so many records of 20 gateways, 2 % of them twice."""
    for first in range(0, rows, FILE_LINES):
        gateway = f"g{first // FILE_LINES % 20}"
        epoch = f"{first // FILE_LINES // 20:010x}"
        lines = [record(gateway, epoch, n) for n in range(1, min(FILE_LINES, rows - first) + 1)]
        folder = landing / gateway
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{epoch}.main.1-{len(lines)}.{len(lines)}.jsonl"
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def record(gateway: str, epoch: str, seq: int) -> str:
    number = seq - 1 if seq % 50 == 0 else seq
    moment = BEGIN + number * 1000
    payload = json.dumps({"value": number % 997 / 10, "unit": "C", "time": moment})
    return json.dumps(
        {
            "gateway_id": gateway, "epoch": epoch, "stream": "main", "seq": number,
            "time": moment, "received": moment + 120, "topic": f"sensors/n{number % 50}/t",
            "payload": b64encode(payload.encode()).decode(), "qos": 1, "retain": False,
            "resent": False, "content_type": None, "properties": [],
        },
        separators=(",", ":"),
    )  # fmt: skip


def report(found: dict[str, list[tuple[float, ...]]], rows: int) -> None:
    """Print a row of the table in bench/README.md for each state."""
    for state, place in (("cold", 0), ("warm", 1)):
        seconds = {name: [each[place] for each in found[name]] for name in found}
        bare, once = (statistics.median(each) for each in seconds.values())
        rates = f"{rows / bare:,.0f} | {rows / once:,.0f} | {bare / once:.2f}x"
        print(f"| {rows:,} | {state} | {rates} |", seconds)
    print("gold after it, warm:", [round(each[2], 1) for each in found["once"]])
    print(time.strftime("%Y-%m-%d", time.gmtime()))


if __name__ == "__main__":
    main()
