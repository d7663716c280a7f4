"""A standalone Spark cluster on loopback, from what pip installed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from tests.support.ports import free_port
from tests.support.waiting import until


class Cluster:
    """A master and workers of one core each; their logs are in `folder`."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._port = str(free_port())
        self._workers = workers
        self._processes: dict[str, Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The master's address."""
        return f"spark://127.0.0.1:{self._port}"

    @property
    def pids(self) -> list[int]:
        """The processes of the workers, whose children are the executors."""
        return [each.pid for name, each in self._processes.items() if name != "master"]

    def start(self) -> None:
        """Start all processes, and wait until the workers are known to the master."""
        self._start("master", "Master", "--port", self._port)
        self._wait("master", "I have been elected leader")
        names = [f"worker{number}" for number in range(self._workers)]
        for name in names:
            sizes = ("--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / name))
            self._start(name, "Worker", *sizes, self.url)
        for name in names:
            self._wait(name, "Successfully registered")

    def wait_for_executors(self) -> None:
        """Return once a program has an executor on each worker."""
        for number in range(self._workers):
            self._wait(f"worker{number}", "Asked to launch executor")

    def kill(self, name: str) -> None:
        """Kill a process and all that it started, as the machine's power would."""
        os.killpg(self._processes[name].pid, signal.SIGKILL)
        self._processes.pop(name).wait()

    def close(self) -> None:
        """End all processes."""
        for name in list(self._processes):
            self.kill(name)

    def _start(self, name: str, kind: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        command = [
            str(home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{kind.lower()}.{kind}",
            *("--host", "127.0.0.1", "--webui-port", str(free_port()), *arguments),
        ]
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        with self._log(name).open("wb") as log:
            self._processes[name] = Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _wait(self, name: str, text: str) -> None:
        until(lambda: text in self._log(name).read_text(), f"{name}: {text}")


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Start a cluster, and end it with the block."""
    folder.mkdir()
    made = Cluster(folder, workers)
    try:
        made.start()
        yield made
    finally:
        made.close()
