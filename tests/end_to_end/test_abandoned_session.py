"""A session on everything that nobody comes back for, beside live clients and a fleet."""

import subprocess
from pathlib import Path

import pytest

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.requirements import find_program
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.mosquitto, pytest.mark.mosquitto_clients]

CONFIG = """
[gateway]
id = "g"
[broker]
maximum_queued_bytes_total = 262144
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "#"
"""

MESSAGES = 300
SIZE = 2_000


class Clients:
    """mosquitto_pub and mosquitto_sub at one broker."""

    def __init__(self, port: int) -> None:
        self._port = port

    def start(self, program: str, *arguments: str) -> "subprocess.Popen[str]":
        path = find_program(program)
        assert path is not None
        return subprocess.Popen(
            [path, "-p", str(self._port), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, program: str, *arguments: str, given: str = "") -> str:
        """Run one to its end, which has to be a good one; return what it says."""
        process = self.start(program, *arguments)
        output, _ = process.communicate(given, timeout=SECONDS)
        assert process.returncode == 0, output
        return output

    def leave_session(self, name: str, topic_filter: str) -> None:
        """Subscribe for good, and go."""
        self.run("mosquitto_sub", "-i", name, "-c", "-q", "1", "-t", topic_filter, "-E")


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_nobody_waits_for_who_does_not_come_back(tmp_path: Path, version: str) -> None:
    fleet = Mosquitto(tmp_path)
    fleet.start()
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=fleet.port))
    try:
        gateway.start()
        here, there = Clients(gateway.port), Clients(fleet.port)
        here.leave_session("abandoned", "#")
        here.leave_session("bystander", "mine")
        at_most = ("-q", "1", "-C", str(MESSAGES), "-W", str(int(SECONDS)), "-F", "%p")
        up = there.start("mosquitto_sub", *at_most, "-i", "up", "-t", "tidegate/g/data/flood")
        live = here.start("mosquitto_sub", *at_most, "-i", "live", "-t", "flood")
        here.run("mosquitto_sub", "-t", "$SYS/broker/version", "-C", "1")  # both are connected
        lines = [f"{number:04} {'x' * SIZE}" for number in range(MESSAGES)]
        for half in (lines[: MESSAGES // 2], lines[MESSAGES // 2 :]):
            publisher = ("-V", version, "-q", "1", "-t", "flood", "-l")
            assert here.run("mosquitto_pub", *publisher, given="\n".join(half)) == ""
        for client in (live, up):
            output, _ = client.communicate(timeout=SECONDS)
            assert sorted({line[:4] for line in output.split("\n") if line}) == [
                f"{number:04}" for number in range(MESSAGES)
            ]
        here.run("mosquitto_pub", "-q", "1", "-t", "mine", "-m", "for the bystander")
        alarm = "$SYS/broker/tidegate/alarm/queue_full"
        said = here.run("mosquitto_sub", "-t", alarm, "-C", "1", "-W", str(int(SECONDS)))
        assert "'abandoned'" in said
        assert "bystander" not in said
        gateway.kill()
        gateway.start()
        stays = ("-c", "-q", "1", "-t", "mine", "-C", "1", "-W", str(int(SECONDS)))
        assert here.run("mosquitto_sub", "-i", "bystander", *stays) == "for the bystander\n"
        lines_of_log = [line for line in gateway.log().split("\n") if "are dropped for" in line]
        assert 1 <= len(lines_of_log) <= 3
        assert "refused" not in gateway.log()
    finally:
        gateway.kill()
        fleet.kill()
