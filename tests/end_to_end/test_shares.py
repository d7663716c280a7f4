"""A client without a name fills what is for all; a user, and another address, find room."""

import subprocess
from pathlib import Path

import pytest

from tests.conformance.support.limited_gateway import PASSWORD, USER, hashed
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.requirements import find_program
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.mosquitto_clients

CONFIG = """
[broker]
maximum_persistent_sessions = 20
[[listener]]
[[listener]]
port = {port}
password_file = "{folder}/users"
"""


def leave_session(port: int, name: str, *more: str) -> bool:
    """Leave a session behind; return False where CONNECT is refused."""
    program = find_program("mosquitto_sub")
    assert program is not None
    arguments = ("-p", str(port), "-i", name, "-c", "-q", "1", "-t", "t", "-E", *more)
    ended = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return ended.returncode == 0


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_sessions_are_left_for_others_also_after_a_restart(tmp_path: Path, version: str) -> None:
    (tmp_path / "users").write_text(f"{USER}:{hashed(PASSWORD)}\n", encoding="utf-8")
    users = free_port()
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=users, folder=tmp_path))
    named = ("-u", USER, "-P", PASSWORD.decode(), "-V", version)
    try:
        gateway.start()
        port = gateway.port
        taken = [leave_session(port, f"hoard-{number}", "-V", version) for number in range(12)]
        assert taken == [True] * 10 + [False] * 2
        assert not leave_session(port, "made-up", "-u", "made-up", "-V", version)
        assert "10 persistent sessions of clients at 127.0.0.1" in gateway.log()
        assert leave_session(users, "user", *named)
        assert leave_session(port, "elsewhere", "-V", version, "-A", "127.0.0.2")
        gateway.kill()
        gateway.start()
        assert leave_session(users, "user", *named)
        assert leave_session(users, "another", *named)
        assert leave_session(port, "hoard-0", "-V", version)
    finally:
        gateway.kill()
