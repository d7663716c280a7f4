"""What a whole run costs by its rows, by its gateways, and on one, two and three workers.

    python -m bench.pipeline_scale [--cases 1000000x1000 3000000x1000 ...] [--no-gold]
    python -m bench.pipeline_scale --workers 1 2 3 --cores 0.5 --cases 5000000x1000

A case is ROWSxGATEWAYS: so many rows arrive at collectors, each gateway's 50 sensors once a
minute, and one `once` reads the files of 10,000 rows. Printed are the CPU seconds of the driver's
Python, of its Java, and of the tasks, with the most memory that driver and Java had. From three
cases on, a plane through them says what 1,000, 100,000 and 10 million gateways need. With --workers
Spark is a standalone cluster of so many workers that run one task at a time. Its time on the clock
is worth something where each has a core: with --cores the driver and each worker have so many cores
at most, by control groups of the kernel, so that several fit on few cores. That time is given from
the start of the process, and from the moment that Spark is up with all workers.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.harness.cpu_quota import group
from bench.pipeline import TICKS
from pipeline.settings import Settings
from pipeline.tables.columns import RECORD, arrow_schema
from tests.support.processes.spark_cluster import Cluster, cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = arrow_schema(RECORD)
FILE_ROWS = 10_000
SENSORS = 50
MINUTE_MS = 60_000
BEGIN = 1_763_683_200_000
"""2025-11-21 00:00 UTC."""
VALUES = 997
CASES = ("1000000x1000", "3000000x1000", "10000000x1000", "1000000x10000", "1000000x100000")
FLEETS = (1_000, 100_000, 10_000_000)
LOOK_SECONDS = 0.25
"""Between two looks at the processes of a run."""
ROWS_A_SECOND = SENSORS / 60
"""Of a gateway."""
ONCE = """
import os, sys
from bench.pipeline_scale import announce, shares
from pipeline.cli import main
announce(int(os.environ["BENCH_WORKERS"]))
assert main(["once", *sys.argv[1:]]) == 0
print("shares", *shares(os.getpid()), flush=True)
sys.stdin.read()  # until the workers were counted
"""
CONFIG = """
master = "{master}"
[spark]
driver.host = "127.0.0.1"
driver.bindAddress = "127.0.0.1"
executor.memory = "900m"
"""


@dataclass(frozen=True)
class Cost:
    """Of one run: CPU seconds, MiB, and seconds of the clock."""

    driver: float
    java: float
    tasks: float
    driver_mib: float
    java_mib: float
    clock: float
    up: float
    """Seconds of these in which Spark was up."""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--cases", nargs="*", default=CASES, metavar="ROWSxGATEWAYS")
    parser.add_argument("--workers", nargs="*", type=int, default=[])
    parser.add_argument("--cores", type=float, help="of the driver, and of each worker")
    parser.add_argument("--no-gold", action="store_true")
    options = parser.parse_args()
    more = ("--no-gold",) if options.no_gold else ()
    print(
        "| rows | gateways | workers | driver | its Java | tasks | driver, Java MiB | clock, up |"
    )
    measured(FILE_ROWS, 1, 0, more)  # Java's archive is written, where there is none
    found = {}
    for case in options.cases:
        rows, gateways = map(int, case.split("x"))
        for workers in options.workers or [0]:
            cost = measured(rows, gateways, workers, more, options.cores)
            found[rows, gateways] = cost
            print(
                f"| {rows:,} | {gateways:,} | {workers or 'local'} | {cost.driver:.1f} |"
                f" {cost.java:.1f} | {cost.tasks:.1f} | {cost.driver_mib:,.0f},"
                f" {cost.java_mib:,.0f} | {cost.clock:.0f} s, {cost.up:.0f} s |",
                flush=True,
            )
    if len(found) >= 3 and len({gateways for _, gateways in found}) > 1:
        forecast(found)
    print(time.strftime("%Y-%m-%d", time.gmtime()))


def measured(
    rows: int, gateways: int, workers: int, more: tuple[str, ...], cores: float | None = None
) -> Cost:
    """Return what a run costs that finds these rows, and tables that hold nothing."""
    with ExitStack() as ends:
        work = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="bench-scale-")))
        land(work / "landing", rows, gateways)
        groups = []
        if cores is not None:
            names = [f"bench-scale-{os.getpid()}-{number}" for number in range(workers + 1)]
            groups = [ends.enter_context(group(each, cores)) for each in names]
        spark = ends.enter_context(started(work, workers))
        pids = spark.pids if spark else []
        begun = time.monotonic()
        folders = ("--landing", str(work / "landing"), "--tables", str(work / "tables"))
        command = [sys.executable, "-c", ONCE, *folders, *configured(work, spark), *more]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"BENCH_WORKERS": str(workers)},
        ) as once:
            assert once.stdout is not None
            for each, pid in zip(groups, (once.pid, *pids), strict=False):
                each.add(pid)
            with Counter([once.pid, *pids]) as counter:
                next(line for line in once.stdout if line.startswith("up"))
                up = time.monotonic()
                said = next(line for line in once.stdout if line.startswith("shares"))
                ended = time.monotonic()
            once.communicate()
        driver, java, driver_mib, java_mib = map(float, said.split()[1:])
        tasks = sum(counter.seconds.values()) - driver - java
        return Cost(driver, java, tasks, driver_mib, java_mib, ended - begun, ended - up)


def announce(workers: int) -> None:
    """Print a line when this process has started Spark and so many workers have joined."""
    from pipeline.operation import session

    start = session.open_session

    def opened(settings: Settings) -> "SparkSession":
        spark = start(settings)
        status = spark.sparkContext._jsc.sc()  # noqa: SLF001 - only Java knows its executors
        while status.getExecutorMemoryStatus().size() <= workers:
            time.sleep(LOOK_SECONDS)
        print("up", flush=True)
        return spark

    session.open_session = opened  # type: ignore[assignment]  # the command calls it so


class Counter:
    """Counts the CPU seconds of processes and of all that they start, until the block ends.

    Nobody else knows those of Spark's Python workers: their parent ignores how they end, so the
    kernel drops their time, and a worker without a task ends after a minute.
    """

    def __init__(self, pids: list[int]) -> None:
        self.seconds: dict[tuple[int, str], float] = {}
        """Of each process, by its id and start."""
        self._pids = pids
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._count)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _count(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            for pid in self._pids:
                self._look(pid)

    def _look(self, pid: int) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            self.seconds[pid, _stat(pid)[19]] = _own(pid)
            for task in Path(f"/proc/{pid}/task").iterdir():
                for child in (task / "children").read_text().split():
                    self._look(int(child))


@contextmanager
def started(work: Path, workers: int) -> Iterator[Cluster | None]:
    """Start a cluster of so many workers; none for no worker."""
    with cluster(work / "cluster", workers) if workers else nullcontext() as spark:
        yield spark


def configured(work: Path, spark: Cluster | None) -> tuple[str, ...]:
    """Return the options that let `once` run on the cluster."""
    if spark is None:
        return ()
    file = work / "pipeline.toml"
    file.write_text(CONFIG.format(master=spark.url))
    return ("--config", str(file))


def shares(pid: int) -> tuple[float, ...]:
    """Return the CPU seconds of a driver and of its Java, and the MiB of the two."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    javas = [int(each) for each in children if "java" in Path(f"/proc/{each}/comm").read_text()]
    java = javas[0] if javas else None
    return _own(pid), _own(java) if java else 0.0, _peak(pid), _peak(java) if java else 0.0


def _own(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:13])) / TICKS


def _stat(pid: int) -> list[str]:
    """Return what the kernel says of a process from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def land(landing: Path, rows: int, gateways: int) -> None:
    """Write the files of a collector: at any time all gateways send, one after the other."""
    names = pa.array([f"g{number:08d}" for number in range(gateways)])
    topics = pa.array([f"sensors/n{number}/temperature" for number in range(SENSORS)])
    payloads = pa.array(
        [f'{{"value":{number / 10},"unit":"°C"}}'.encode() for number in range(VALUES)]
    )
    (landing / "20251121").mkdir(parents=True)
    for file, first in enumerate(range(0, rows, FILE_ROWS)):
        arrived = np.arange(first, min(first + FILE_ROWS, rows))
        seqs = arrived // gateways + 1
        times = BEGIN + (seqs - 1) * MINUTE_MS // SENSORS
        made: dict[str, pa.Array] = {
            "gateway_id": names.take(pa.array(arrived % gateways)),
            "epoch": pa.repeat("00a1b2c3d4", len(arrived)),
            "stream": pa.repeat("main", len(arrived)),
            "topic": topics.take(pa.array(seqs % SENSORS)),
            "payload": payloads.take(pa.array(arrived % VALUES)),
            "seq": pa.array(seqs),
            "time": pa.array(times),
            "received": pa.array(times + 120),
            "qos": pa.array(np.ones(len(arrived), np.int8)),
            "retain": pa.array(np.zeros(len(arrived), bool)),
            "resent": pa.array(np.zeros(len(arrived), bool)),
        }
        columns = [
            made[field.name].cast(field.type)
            if field.name in made
            else pa.nulls(len(arrived), field.type)
            for field in SCHEMA
        ]
        table = pa.Table.from_arrays(columns, schema=SCHEMA)
        name = f"20251121/collector-0a1b2c3d-{file + 1:010d}.parquet"
        pq.write_table(table, landing / name, compression="zstd", write_page_checksum=True)


def forecast(found: dict[tuple[int, int], Cost]) -> None:
    """Print what fleets need, by a plane through what was measured: a run, a row, a gateway."""
    cases = np.array([(1, rows, gateways) for rows, gateways in found], float)
    parts = {
        "driver": [cost.driver + cost.java for cost in found.values()],
        "tasks": [cost.tasks for cost in found.values()],
    }
    plane = {
        name: np.linalg.lstsq(cases, np.array(costs), rcond=None)[0]
        for name, costs in parts.items()
    }
    for name, (run, row, gateway) in plane.items():
        print(
            f"{name}: {run:.1f} s a run, {row * 1e6:.2f} µs a row, {gateway * 1e6:.1f} µs a gateway"
        )
    print("| gateways | rows/s | cores of tasks | one driver, a run every minute: busy |")
    for fleet in FLEETS:
        rows = fleet * ROWS_A_SECOND
        tasks = rows * plane["tasks"][1] + fleet * plane["tasks"][2] / 60
        driver = (plane["driver"] @ (1, rows * 60, fleet)) / 60
        print(f"| {fleet:,} | {rows:,.0f} | {tasks:,.1f} | {driver:,.2f} cores |")


if __name__ == "__main__":
    main()
