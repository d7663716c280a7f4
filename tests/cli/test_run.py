import gc
import signal
import socket
import sqlite3
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli import run as interpreter
from gateway.cli.run import (
    FEW_FROZEN,
    MIDDLE_COLLECTIONS,
    THAWED_AFTER,
    YOUNG_OBJECTS,
    Freezer,
    set_up_collector,
)
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, Disconnect
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.engine.migrations.migrate import migrate
from tests.cli.conftest import Command, MakeGateway
from tests.support.ports import free_port
from tests.support.processes.gateway_process import COMMAND, GatewayProcess
from tests.support.raw_client import Clients
from tests.support.waiting import SECONDS, listens, until

SUBSCRIBED = ReasonCode.GRANTED_QOS_1


def output(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the only line on standard error of a start that failed with status 2."""
    assert done.returncode == 2, done
    assert not done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("tidegate: ")
    return done.stderr.rstrip("\n")


# --- starts that fail -----------------------------------------------------------------------


@pytest.mark.uncovered
def test_a_busy_port(tidegate: Command, bare: GatewayProcess) -> None:
    line = output(tidegate("run", "--port", bare.port))
    assert bare.process is not None
    begin = f"tidegate: cannot listen on 127.0.0.1:{bare.port}: Address already in use by "
    end = f"(process {bare.process.pid}); another port: --port, or `port` of the [[listener]]"
    assert line.startswith(begin)
    assert line.endswith(end)


def test_a_data_folder_in_use(tidegate: Command, bare: GatewayProcess) -> None:
    assert bare.process is not None
    line = output(tidegate("run", "--port", free_port(), "--data", bare.data))
    assert line == (
        f"tidegate: {bare.data} is in use by process {bare.process.pid}: each gateway needs its own"
    )


def test_a_data_folder_that_cannot_be(tidegate: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = output(tidegate("run", "--port", free_port(), "--data", tmp_path / "file" / "var"))
    assert str(tmp_path / "file" / "var") in line


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[gateway]\nidd = 'barn'", "gateway.idd = 'barn' is not allowed: unknown key; there are"),
        ("[[listener]]\nport = 99999", "listener[0].port = 99999 is not allowed: a whole number"),
        ("[[uplink.rule]]\ntopic = 'a'\nwhere = 'x >'", "uplink.rule[0].where = 'x >' is not"),
        ("[[listener]]\npassword_file = 'none'", "password_file = 'none' is not allowed: No"),
        ("[gateway", "gateway.toml: not TOML: "),
    ],
)
def test_a_wrong_configuration(tidegate: Command, tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    assert part in output(tidegate("run", "--config", path, "--port", free_port()))


@pytest.mark.uncovered
def test_a_configuration_that_is_not_there(tidegate: Command, tmp_path: Path) -> None:
    assert output(tidegate("run", "--config", "none.toml")) == (
        "tidegate: none.toml: No such file or directory"
    )
    assert not list(tmp_path.iterdir())


def test_a_file_of_a_newer_version(tidegate: Command, tmp_path: Path) -> None:
    data = tmp_path / "var"
    data.mkdir()
    database = sqlite3.connect(data / "tidegate.db", isolation_level=None)
    migrate(database)
    database.execute("PRAGMA user_version = 9999")
    database.execute("CREATE TABLE of_tomorrow (x)")
    database.close()
    assert "tidegate.db" in output(tidegate("run", "--port", free_port(), "--data", data))


def test_a_failed_start_leaves_the_folder_free(
    make_gateway: MakeGateway, bare: GatewayProcess, tmp_path: Path
) -> None:
    gateway = make_gateway(tmp_path)
    wanted, gateway.port = gateway.port, bare.port
    busy = subprocess.run(
        [str(COMMAND), "run", "--port", str(bare.port), "--data", str(gateway.data)],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert busy.returncode == 2
    gateway.port = wanted
    gateway.start()
    assert gateway.stop() == 0


# --- running --------------------------------------------------------------------------------


@pytest.mark.uncovered
def test_a_bare_broker_reads_no_file_and_keeps_its_data_in_var(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text("not TOML")
    port = free_port()
    process = subprocess.Popen(
        [str(COMMAND), "run", "--port", str(port)], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: listens(port), "the gateway listens")
        assert (tmp_path / "var" / "tidegate.db").exists()
        assert (tmp_path / "var" / "lock").read_text() == f"{process.pid}\n"
        for each in (tmp_path / "var", *(tmp_path / "var").iterdir()):
            assert not each.stat().st_mode & 0o007, f"{each.name} may be read by others"
    finally:
        process.terminate()
        assert process.wait(SECONDS) == 0


@pytest.mark.uncovered
def test_it_serves_without_standard_error(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", str(COMMAND), "run", "--port", str(port)], cwd=tmp_path
    )
    try:
        until(lambda: listens(port), "the gateway listens")
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.settimeout(SECONDS)
                client.sendall(encode(Connect("c"), MQTT_5))
                assert client.recv(1) == b"\x20"
    finally:
        process.terminate()
        assert process.wait(SECONDS) == 0


@pytest.mark.uncovered
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_with_clients_connected(
    make_gateway: MakeGateway, tmp_path: Path, number: signal.Signals
) -> None:
    gateway = make_gateway(tmp_path)
    gateway.start()
    clients = Clients(gateway.port)
    five = await clients.connect("five", MQTT_5)
    three = await clients.connect("three", MQTT_3_1_1)
    await clients.open()
    assert await five.subscribe("#", 1) == SUBSCRIBED
    assert gateway.stop(number) == 0
    packets = await five.until_closed()
    assert isinstance(packets[-1], Disconnect)
    assert packets[-1].reason_code == ReasonCode.SERVER_SHUTTING_DOWN
    assert not await three.until_closed()
    await clients.close()
    assert "Traceback" not in gateway.log()
    assert not (gateway.data / "tidegate.db-wal").exists()


@pytest.mark.uncovered
def test_the_port_replaces_that_of_the_first_listener(
    make_gateway: MakeGateway, tmp_path: Path
) -> None:
    second = free_port()
    text = f"[[listener]]\nport = 1\n[[listener]]\nport = {second}\n"
    gateway = make_gateway(tmp_path, text)
    gateway.start()
    until(lambda: listens(second), "the second listener listens")
    line = f"listens on 127.0.0.1:{gateway.port}, 127.0.0.1:{second}"
    until(lambda: line in gateway.log(), "the log names both listeners", gateway.log)
    assert gateway.stop() == 0


def test_the_three_lines_to_try_are_told_only_on_a_terminal(bare: GatewayProcess) -> None:
    assert "try:" not in bare.log()


pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="Python 3.14 has another collector"
)

LASTING = 40 * YOUNG_OBJECTS


class Cycle:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """Give how many objects each look was at."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))

    before, callbacks = gc.get_threshold(), list(gc.callbacks)
    gc.collect()
    set_up_collector()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks[:] = callbacks
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as it was for all tests


@pytest.mark.uncovered
def test_no_look_is_at_all_that_lasts(looks: list[int]) -> None:
    lasting = [[number] for number in range(LASTING)]
    assert len(lasting) == LASTING
    assert len(looks) > LASTING // YOUNG_OBJECTS // 2
    assert max(looks) < 4 * (MIDDLE_COLLECTIONS + 1) * YOUNG_OBJECTS


@pytest.mark.uncovered
def test_what_became_a_cycle_after_it_was_frozen_is_found(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "FEW_FROZEN", sys.maxsize)  # this process has very many
    one = Cycle()
    gone = weakref.ref(one)
    gc.collect()
    del one
    gc.collect()
    assert gone() is not None
    for _ in range(THAWED_AFTER):
        gc.collect()
    assert gone() is None
    assert max(looks) > 4 * YOUNG_OBJECTS


@pytest.mark.uncovered
def test_very_many_objects_are_thawed_once_an_hour(looks: list[int]) -> None:
    lasting = [[number] for number in range(2 * FEW_FROZEN)]
    gc.collect()
    looks.clear()
    for _ in range(3 * THAWED_AFTER):
        gc.collect()
    assert max(looks) < FEW_FROZEN
    (freezer,) = (each for each in gc.callbacks if isinstance(each, Freezer))
    freezer._thaws_at = 0.0  # the hour is over
    for _ in range(3 * THAWED_AFTER):
        gc.collect()
    assert sum(each > len(lasting) for each in looks) == 1
