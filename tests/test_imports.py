import os
import re
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.ports import free_port

ROOT = Path(__file__).parents[1]

HEAVY = {
    *("pydantic", "rich", "textual", "bleak", "pyspark", "pyarrow", "pandas", "numpy"),
    *("serial", "tui", "pipeline"),
}
"""Too much memory and time for a board of 512 MB: imported where they are used, if they are."""

UPLINK_ONLY = {"paho", "cronsim"}

LISTENER_ONLY = {"websockets"}

NOT_AT_START = (
    *("_ssl", "_hashlib"),  # OpenSSL, 4 MiB: for TLS and password files
    *("importlib.metadata", "importlib.resources", "email", "zipfile", "tempfile", "random"),
    *("decimal", "tomllib", "http", "urllib.request", "shutil", "lzma"),
    *("argparse", "gettext", "getpass", "gateway.cli.commands", "gateway.cli.parser"),
    *(
        "gateway.uplink",
        "gateway.app.uplink.uplinks",
        "gateway.app.uplink.outbox",
        "gateway.app.uplink.headroom",
    ),
    *("gateway.storage.outbox", "gateway.storage.history.history", "gateway.app.history"),
    *("gateway.storage.ledger.ledger",),
    *("gateway.storage.engine.memory_database", "gateway.salvage.salvage"),
    *("gateway.broker.channels.channel", "gateway.broker.channels.consumers"),
    *("base64", "unicodedata", "shlex"),
    *("gateway.salvage.layouts", "gateway.salvage.cells", "gateway.salvage.pages"),
    "gateway.clock.spans",
    *("gateway.telemetry.certificates", "gateway.telemetry.metrics", "gateway.app.checks.service"),
    *("gateway.bridges", "gateway.app.simulator", "gateway.storage.state.node_frames"),
    "gateway.storage.state.packet_counters",
    "gateway.storage.state.series_labels",
    *(
        "gateway.server.tls.context",
        "gateway.server.tls.connection",
        "gateway.server.websocket.connection",
    ),
    *("gateway.where.compile", "gateway.where.language.expression"),
    *("gateway.where.sqlite", "gateway.where.node", "msgspec", "difflib"),
    *("gateway.server.passwords.file", "gateway.telemetry.http_server"),
)
"""Not in memory while a gateway without any configuration starts and runs: 12 MiB less."""

MODULES_OF_A_BARE_BROKER = 289
"""Modules of ours that it has in memory, at most: one is 25 KiB on average."""

IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(module.name)
print(*sys.modules)
"""


def imported_by(*packages: str) -> set[str]:
    """Return the top-level names in memory after importing every module of the packages."""
    command = [sys.executable, "-c", IMPORT_ALL, *packages]
    # coverage measures what tests start, and would bring modules of its own into memory
    environment = {name: os.environ[name] for name in os.environ if "COVERAGE" not in name}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_no_module_of_the_gateway_imports_a_heavy_one() -> None:
    names = imported_by("gateway")
    assert {"asyncio", "sqlite3"} <= names
    assert names & HEAVY == set()


def test_the_protocol_core_brings_no_io_into_memory() -> None:
    core = ("gateway.mqtt", "gateway.session", "gateway.routing", "gateway.broker")
    assert imported_by(*core) & {"asyncio", "socket", "ssl", "sqlite3", "selectors"} == set()


def wait_for_listener(gateway: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 60
    while gateway.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "the gateway does not listen"
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"the gateway ended with {gateway.returncode}")


def modules_of_a_gateway(folder: Path, *arguments: str) -> set[str]:
    """Return what a gateway that is started so has imported when it ends, soon after its start."""
    port, report = free_port(), folder / "report"
    code = "from gateway.cli.main import main; raise SystemExit(main())"
    command = [sys.executable, "-X", "importtime", "-c", code]
    command += ["run", "--port", str(port), "--data", str(folder / "data"), *arguments]
    # what measures coverage brings modules of its own into memory
    environment = {name: os.environ[name] for name in os.environ if "COVERAGE" not in name}
    with report.open("w") as errors:
        gateway = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=errors
        )
    try:
        wait_for_listener(gateway, port)
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(timeout=60) == 0
    finally:
        gateway.kill()
        gateway.wait()
    return set(re.findall(r"^import time:.*\| +([\w.]+)", report.read_text(), re.MULTILINE))


def test_a_bare_broker_runs_without_them(tmp_path: Path) -> None:
    modules = modules_of_a_gateway(tmp_path)
    names = {name.partition(".")[0] for name in modules}
    assert {"gateway", "sqlite3"} <= names
    assert names & (HEAVY | UPLINK_ONLY | LISTENER_ONLY) == set()
    assert all(find_spec(name) for name in NOT_AT_START)
    too_early = tuple(f"{name}." for name in NOT_AT_START)
    assert {name for name in modules if f"{name}.".startswith(too_early)} == set()
    own = [name for name in modules if name.startswith("gateway.")]
    assert len(own) <= MODULES_OF_A_BARE_BROKER, "import what is seldom used where it is used"


FIRST_EXPRESSION = """
import sys
from gateway.broker.subscribing.expressions import Expressions
from gateway.routing.filters.filter_index import FilterIndex

def imported():
    return [name for name in sys.modules if name.startswith("gateway.")]

def indexed():
    where = yield from Expressions(1).get_in_pieces("payload.a > 1 AND clientid = 'x'")
    yield
    FilterIndex().add(where, None)

before = len(imported())
for _ in indexed():
    print(len(imported()) - before)
    before = len(imported())
print(len(imported()) - before)
"""


def test_the_first_expression_imports_its_compiler_in_pieces() -> None:
    command = [sys.executable, "-c", FIRST_EXPRESSION]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    *importing, compiling, indexing = map(int, done.stdout.split())
    assert (compiling, indexing) == (0, 0)
    assert len(importing) >= 6
    assert max(importing) <= 4


def test_an_uplink_without_tls_needs_no_openssl(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(f"[uplink]\nurl = 'mqtt://127.0.0.1:{free_port()}'\n", encoding="utf-8")
    modules = modules_of_a_gateway(tmp_path, "--config", str(config))
    assert "gateway.uplink.fleet.client" in modules
    assert modules & {"_ssl", "_hashlib", "encodings.idna", "zlib", "base64", "random"} == set()


def test_every_layer_imports_only_what_is_below_it() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    linted = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert linted.returncode == 0, linted.stdout
    assert "0 broken" in linted.stdout
