"""The pipeline beside bare PySpark on the same JSON lines, in processes of their own.

    python -m bench.pipeline [--rows 100000] [--rounds 3]

Prints CPU seconds and rows for each CPU second: `once` (bronze, silver and ledger, without gold)
and a script that reads the lines with a schema, writes them as Parquet, drops duplicates and
decodes the readings into a second table. The two take turns.
"""

import argparse
import contextlib
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path

FILE_LINES = 10_000
PR_SET_CHILD_SUBREAPER = 36
"""Linux: orphaned grandchildren become children, so that their CPU time is counted."""
BEGIN = 1_763_740_000_000

BARE = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
landing, tables, schema, key = sys.argv[1:5]
spark = (SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.session.timeZone", "UTC").getOrCreate())
rows = spark.read.schema(schema).json(landing + "/*/*.jsonl")
rows = rows.withColumn("payload", F.unbase64("payload"))
rows.write.parquet(tables + "/bronze")
bronze = spark.read.parquet(tables + "/bronze").dropDuplicates(key.split(","))
value = F.from_json(F.col("payload").cast("string"), "value double, unit string, time bigint")
silver = bronze.withColumn("reading", value).select("gateway_id", "epoch", "stream", "seq", "topic",
    F.timestamp_millis("time").alias("event_time"), "reading.value", "reading.unit")
silver = silver.withColumn("event_date", F.to_date("event_time"))
silver.write.partitionBy("event_date").parquet(tables + "/silver")
"""
SCHEMA = (
    "gateway_id string, epoch string, stream string, seq bigint, time bigint, received bigint,"
    " topic string, payload string, qos int, retain boolean, resent boolean, content_type string,"
    " properties array<array<string>>"
)


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parser = argparse.ArgumentParser(description="The pipeline beside bare PySpark.")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="bench-pipeline-"))
    try:
        land(work / "landing", options.rows)
        found: dict[str, list[float]] = {"bare": [], "once": []}
        for _ in range(options.rounds):
            for name, seconds in found.items():
                shutil.rmtree(work / name, ignore_errors=True)
                seconds.append(cpu_of(command(name, work)))
        report(found, options.rows)
    finally:
        shutil.rmtree(work)


def command(name: str, work: Path) -> list[str]:
    landing, tables = str(work / "landing"), str(work / name / "tables")
    if name == "bare":
        key = "gateway_id,epoch,stream,seq"
        return [sys.executable, "-c", BARE, landing, tables, SCHEMA, key]
    once = [sys.executable, "-m", "pipeline.cli", "once", "--no-gold"]
    return [*once, "--landing", landing, "--tables", tables]


def cpu_of(arguments: list[str]) -> float:
    """Run a command and return the CPU seconds of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()  # for the Java process, which its parent did not wait for
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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


def report(found: dict[str, list[float]], rows: int) -> None:
    middle = {name: statistics.median(seconds) for name, seconds in found.items()}
    for name, seconds in found.items():
        each = ", ".join(f"{second:.1f}" for second in seconds)
        print(f"{name}: {rows / middle[name]:,.0f} rows a CPU second ({each} s)")
    print(f"bare / once, CPU: {middle['bare'] / middle['once']:.2f}x at {rows:,} rows")
    print(time.strftime("%Y-%m-%d", time.gmtime()))


if __name__ == "__main__":
    main()
