"""An S3 server on this machine, moto's, whose requests that change something can be held.

It has a process of its own: deltalake keeps Python's threads waiting while it asks a server.
"""

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow.fs import FileSelector, S3FileSystem

from tests.support.processes.fork_server import MEASURED

READS = ("GET", "HEAD")
KEYS = {"AWS_ACCESS_KEY_ID": "tidegate", "AWS_SECRET_ACCESS_KEY": "secret"}

PLAIN = dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR"), os.devnull)
"""The environment of programs that speak plain HTTP with a store. Without it, deltalake reads all
of the system's certificates whenever it opens a table, which takes two thirds of that time."""


class S3Server:
    """The server's process, and what is asked of it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.object_store"]
        unmeasured = {name: text for name, text in os.environ.items() if name != MEASURED}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=unmeasured, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    @property
    def environment(self) -> dict[str, str]:
        """What tells a program of the server."""
        address = {"AWS_ENDPOINT_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true"}
        return KEYS | PLAIN | address

    @property
    def options(self) -> dict[str, str]:
        """What tells deltalake of it."""
        found = {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        return found | {k: v for k, v in self.environment.items() if k not in PLAIN}

    @property
    def files(self) -> S3FileSystem:
        """Its buckets as folders."""
        return S3FileSystem(
            access_key=KEYS["AWS_ACCESS_KEY_ID"],
            secret_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            region="us-east-1",
            endpoint_override=self.url,
            allow_bucket_creation=True,
        )

    def objects(self, url: str) -> dict[str, int]:
        """Return the Parquet objects below an address with their sizes, but for those of logs."""
        folder = FileSelector(url.removeprefix("s3://"), allow_not_found=True, recursive=True)
        found = {each.path: each.size for each in self.files.get_file_info(folder)}
        return {p: s for p, s in found.items() if p.endswith(".parquet") and "_delta_log" not in p}

    def writes(self) -> list[str]:
        """Return the requests that changed something since this was asked last."""
        found: list[str] = self._control("writes")
        return found

    def held(self) -> list[str]:
        """Return the requests that wait to be let go."""
        found: list[str] = self._control("held")
        return found

    def let_go(self) -> None:
        """Let one request go on, if any is held."""
        self._control("let-go")

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold each request that would change something until it is let go, or this ends."""
        self._control("hold")
        try:
            yield
        finally:
            self._control("hold-no-more")

    def throttle(self, requests: int) -> None:
        """Answer so many of the next requests with SlowDown."""
        self._control("throttle", str(requests).encode())

    @contextmanager
    def listing_late(self) -> Iterator[None]:
        """Leave what is put meanwhile out of lists until this ends."""
        self._control("late", b"1")
        try:
            yield
        finally:
            self._control("late", b"0")

    @contextmanager
    def asking_for_credentials(self) -> Iterator[None]:
        """Refuse all whom it does not know, and it knows nobody."""
        self._control("moto-api/reset-auth", b"0")
        try:
            yield
        finally:
            self._control("moto-api/reset-auth", b"inf")

    def _control(self, path: str, body: bytes = b"-") -> Any:
        reported = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.url}/{path}", body, reported)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


class _Application:
    """moto's for S3, in front of which requests can be held.

    Its own dispatcher asks the disk for 175 services at each request, a third of what that takes.
    """

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import create_backend_app

        self._s3: Any = create_backend_app("s3")
        self._settings: Any = create_backend_app("moto_api")
        self._one_at_a_time = threading.Lock()  # moto's dictionaries are not made for threads
        self._changed = threading.Condition()
        self._holds = False
        self._allowed = 0
        self._held: list[str] = []
        self._writes: list[str] = []
        self._throttled = 0
        self._late: set[str] | None = None
        self._controls: dict[str, Callable[[], object]] = {
            "/writes": self._take_writes,
            "/held": lambda: self._held,
            "/hold": lambda: self._hold(True),
            "/hold-no-more": lambda: self._hold(False),
            "/let-go": self._let_go,
        }

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Any:
        control = self._controls.get(environment["PATH_INFO"])
        method, path = environment["REQUEST_METHOD"], environment["PATH_INFO"]
        if path in ("/throttle", "/late"):
            body = environment["wsgi.input"].read(int(environment["CONTENT_LENGTH"]))
            if path == "/throttle":
                self._throttled = int(body)
            else:
                self._late = set() if body == b"1" else None
            control = str
        if control is not None:
            start("200 OK", [])
            return [json.dumps(control()).encode()]
        if self._throttled > 0:
            self._throttled -= 1
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [
                b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
            ]
        if method not in READS and not path.startswith("/moto-api/"):
            self._wait(f"{method} {path}")
        with self._one_at_a_time:
            return self._answered(environment, start)

    def _answered(self, environment: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        """Return moto's answer; a list that is late lacks what was put since."""
        if environment["PATH_INFO"].startswith("/moto-api/"):
            return list(self._settings(environment, start))
        if self._late is None:
            return list(self._s3(environment, start))
        if environment["REQUEST_METHOD"] == "PUT":
            self._late.add(environment["PATH_INFO"].split("/", 2)[2])
        if "list-type=2" not in environment.get("QUERY_STRING", ""):
            return list(self._s3(environment, start))
        begun: list[Any] = []
        page = b"".join(self._s3(environment, lambda *given: begun.extend(given)))
        for key in self._late:
            each = re.escape(f"<Contents><Key>{key}</Key>".encode()) + rb".*?</Contents>"
            page = re.sub(each, b"", page, flags=re.DOTALL)
        headers = [pair for pair in begun[1] if pair[0].lower() != "content-length"]
        start(begun[0], [*headers, ("Content-Length", str(len(page)))])
        return [page]

    def _wait(self, request: str) -> None:
        with self._changed:
            self._held.append(request)
            self._changed.wait_for(lambda: self._allowed or not self._holds)
            self._allowed = max(0, self._allowed - 1)
            self._held.remove(request)
            self._writes.append(request)
            self._changed.notify_all()

    def _take_writes(self) -> list[str]:
        with self._changed:
            taken, self._writes = self._writes, []
            return taken

    def _hold(self, holds: bool) -> None:
        with self._changed:
            self._holds, self._allowed = holds, 0
            self._changed.notify_all()

    def _let_go(self) -> None:
        with self._changed:
            self._allowed = len(self._held[:1])
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._allowed)


def serve() -> None:
    """Print the address and serve."""
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, *_: object) -> None: ...

    server = make_server("127.0.0.1", 0, _Application(), threaded=True, request_handler=Quiet)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve()
