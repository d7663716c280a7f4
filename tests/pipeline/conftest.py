"""One Spark session for all tests of the pipeline, and the way to run the pipeline in it."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.place import Place, place_of
from pipeline.records.declared import NOTHING, Declared
from pipeline.settings import BatchSize, make_settings
from tests.support import azurite
from tests.support.object_store import S3Server

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

CODE = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
DAEMON = "tests.support.spark_daemon"
INTERPRETED = dict(zip(CODE, ("false", "NO_CODEGEN"), strict=True))
FAST = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.daemon.module": DAEMON,
    **INTERPRETED,
}
"""To make a plan, and Java code of it, takes most of the time of a query over few rows."""


OF_STORES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"),
    *("AZURE_STORAGE_ENDPOINT", "AZURE_STORAGE_ACCOUNT_KEY"),
)
SECONDS = 600
"""How long a test may take that runs Spark, whose start alone takes half a minute at times."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that run Spark the time that they may need on a busy machine."""
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture(scope="session", autouse=True)
def _without_java_cache() -> Iterator[None]:
    """Let commands leave the user's cache as it is, and spend no time on an archive for one run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", os.devnull)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Start Spark once, as the command does but for options that start it fast."""
    from pipeline.operation.session import open_session

    settings = make_settings(
        tables=tmp_path_factory.mktemp("spark") / "tables", master="local[2,3]"
    )
    session = open_session(settings, FAST)
    yield session
    session.stop()


@pytest.fixture
def compiled_spark(spark: "SparkSession") -> "Iterator[SparkSession]":
    """Return the session as the command has it, where what Spark makes of a query is the test."""
    for name, value in zip(CODE, ("true", "FALLBACK"), strict=True):
        spark.conf.set(name, value)
    yield spark
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture
def session(spark: "SparkSession") -> "Iterator[Callable[[], SparkSession]]":
    """Return what gives Spark, whose tasks get this process's variables of stores by it.

    They have those of the process that starts Java else.
    """
    context = spark.sparkContext
    before = dict(context.environment)

    def given() -> "SparkSession":
        context.environment.update(
            {name: os.environ[name] for name in OF_STORES if name in os.environ}
        )
        return spark

    yield given
    context.environment.clear()
    context.environment.update(before)


@pytest.fixture(scope="session")
def run(spark: "SparkSession") -> "Run":
    """Return a run of the pipeline on the data folder that it is given."""
    from pipeline.operation.once import How, run_once

    def run_in(
        data: Path,
        *,
        batch: BatchSize | None = None,
        verify: bool = False,
        gold: bool = False,
        declared: Declared = NOTHING,
        assets: "pa.Table | None" = None,
    ) -> "Totals":
        settings = make_settings(data / "landing", data / "tables", batch=batch)
        how = How(verify=verify, gold=gold, declared=declared, assets=assets)
        return run_once(settings, lambda: spark, how)

    return run_in


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Start moto's server once."""
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Return moto's server, which this process finds by its environment."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    yield s3_server
    s3_server.throttle(0)


@pytest.fixture
def s3_place(s3: S3Server) -> Place:
    """Return an empty place in a bucket of its own."""
    bucket = f"fleet-{time.time_ns()}"
    s3.files.create_dir(bucket)
    return place_of(f"s3://{bucket}/all")


@pytest.fixture(scope="session")
def azurite_url() -> Iterator[str]:
    """Start Azurite once."""
    with azurite.running() as url:
        yield url


@pytest.fixture
def azure_place(azurite_url: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return an empty place in a container of its own."""
    for name, value in azurite.environment(azurite_url).items():
        monkeypatch.setenv(name, value)
    return azurite.new_place()
