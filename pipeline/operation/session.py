"""The Spark session: quiet, in UTC, and local unless a master says otherwise."""

import atexit
import fcntl
import logging
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import accumulators
from pyspark.errors import PySparkAttributeError, PySparkRuntimeError
from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.operation.class_archive import ClassArchive, class_archive
from pipeline.operation.preflight import INSTALL_JAVA, find_java
from pipeline.settings import Settings
from pipeline.tables.lock import SCRATCH, locked

DRIVER_MEMORY = "4g"
"""The heap's bound when Spark runs locally; it is taken as it is needed."""
PARTITIONS_PER_CORE = 2
"""Shuffle partitions; Spark's own 200 cost small batches 14 times as much."""
GROUPS = 10_000
"""Devices that a task sums up by a hash table; Spark's own 128 had it sort the rows of more."""

SQL = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(GROUPS),
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # not the legacy INT96
}
"""What rows depend on; a session that somebody else configured may have other values."""
EVERYWHERE = SQL | {
    "spark.app.name": "tidegate-pipeline",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
PATIENT = "7d"
"""How long Spark waits for a heartbeat that it sends itself. Its own two minutes are over when the
clock is set forward, or the machine was suspended, and end the job ten minutes later."""
LOCALLY = {
    "spark.network.timeout": PATIENT,
    "spark.driver.memory": DRIVER_MEMORY,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
SERVERS = (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer)
"""They print a traceback when Java ends while it talks to them, which the job tells in a line."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SHORT_RUN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A run is short: the first compiler and the plain collector halve its time."""


def open_session(
    settings: Settings, extra: Mapping[str, str] | None = None, *, service: bool = False
) -> SparkSession:
    """Start Spark; what it would write on the terminal goes to `settings.spark_log`.

    What ended processes left in `settings.scratch` is cleared first. `extra` adds to the
    configuration. A service uses Java's class archive and does not write one. Raises
    PipelineError when Java does not start Spark.
    """
    java = find_java()
    _prepare_process(settings)
    given = dict(extra or {}) | dict(settings.spark)
    archive = ClassArchive()
    if settings.local and JAVA_OPTIONS not in given:
        archive = class_archive(settings.cache, java, write=not service)
    options = EVERYWHERE | given
    if settings.local:
        options = EVERYWHERE | _locally(_own_scratch(settings.scratch), archive.option) | given
    builder = SparkSession.builder.master(settings.master)
    for name, value in options.items():
        builder = builder.config(name, value)
    try:
        with _terminal_to(settings.spark_log, archive.log):
            spark = builder.getOrCreate()
    except PySparkRuntimeError:
        raise PipelineError(
            f"{java} did not start Spark, which needs Java 17 or 21 ({INSTALL_JAVA}); "
            f"it wrote {settings.spark_log}"
        ) from None
    java_process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001
    atexit.register(archive.keep, java_process)
    if "spark.sql.shuffle.partitions" not in options:
        partitions = PARTITIONS_PER_CORE * spark.sparkContext.defaultParallelism
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return spark


def session_beside(spark: SparkSession) -> SparkSession:
    """Return another session of this Spark with the settings that rows depend on.

    Raises PipelineError for one of Spark Connect, whose tasks run no functions over files.
    """
    try:
        _ = spark.sparkContext
    except PySparkAttributeError:
        raise PipelineError("this is a session of Spark Connect: use a classic one") from None
    own = spark.newSession()
    for name, value in SQL.items():
        own.conf.set(name, value)
    return own


def _prepare_process(settings: Settings) -> None:
    """Set what Spark takes from its process, and quieten what would write on the terminal."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers else take PATH's python3
    if settings.local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else it looks the host's name up
    for repeater in ("DataFrameQueryContextLogger", "py4j"):  # they print what is raised anyway
        logging.getLogger(repeater).setLevel(logging.CRITICAL)
    for server in SERVERS:
        server.handle_error = _ignore  # type: ignore[method-assign,assignment]  # any will do
    settings.spark_log.parent.mkdir(parents=True, exist_ok=True)


def _ignore(_server: object, _request: object, _client: object) -> None:
    """Stand for a server's `handle_error`."""


def _own_scratch(root: Path) -> Path:
    """Return a new folder that is locked as long as this process lives; others' are cleared."""
    root.mkdir(parents=True, exist_ok=True)
    with locked(root.parent, SCRATCH, wait=True):  # else another start clears it too early
        for left in root.iterdir():
            if not _is_locked(left):
                _remove(left)
        own = root / secrets.token_hex(4)
        own.mkdir()
        fcntl.flock(os.open(own, os.O_RDONLY), fcntl.LOCK_EX)  # the process's end closes it
    return own


def _remove(left: Path) -> None:
    if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)  # a dying Java may still write there
    else:
        left.unlink()


def _is_locked(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _locally(scratch: Path, archive: str) -> dict[str, str]:
    """Return the settings of a Spark in this machine, with its working files in `scratch`."""
    java_options = f'{SHORT_RUN} {archive} "-Djava.io.tmpdir={scratch}"'
    return LOCALLY | {"spark.local.dir": str(scratch), JAVA_OPTIONS: java_options}


@contextmanager
def _terminal_to(log: Path, first: str) -> Iterator[None]:
    """Let the Java process that starts meanwhile inherit a log file, of such a first line."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        with open(log, "wb", opener=_appending) as file:
            file.write(f"{first}\n".encode())
            file.flush()
            for descriptor in saved:
                os.dup2(file.fileno(), descriptor)
        yield
    finally:
        for descriptor, original in saved.items():
            os.dup2(original, descriptor)
            os.close(original)


def _appending(path: str, flags: int) -> int:
    """Open a log that another process, whose Java goes on writing, may empty at any time."""
    return os.open(path, flags | os.O_APPEND, 0o666)
