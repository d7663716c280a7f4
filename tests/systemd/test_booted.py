"""The unit as systemd/README.md installs it, under a systemd that has really booted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.booted_systemd import BootedSystemd

pytestmark = [pytest.mark.nspawn, pytest.mark.slow]

SYSTEMD = Path(__file__).parents[2] / "systemd"
FOLDER = "/var/lib/tidegate"

CONFIG = """\
[gateway]
id = "barn"
[metrics]
[uplink]
"""

CLOSED = """\
[[listener]]
[[access.role]]
name = "sensor"
users = ["sensor-*"]
write = ["sensors/%u/#"]
"""

HURRY = """\
[Service]
WatchdogSec=5
RestartSec=100ms
TimeoutAbortSec=5
"""
"""The unit's own times are right for a board and long for a test."""

ASK = """\
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9234/healthz", timeout=10).read().decode())
"""


ORDER = f"""\
import os, socket
with socket.socket(socket.AF_UNIX) as gateway:
    gateway.settimeout(10)
    found = os.stat("{FOLDER}")
    gateway.connect(f"/run/tidegate/{{found.st_dev:x}}.{{found.st_ino:x}}.sock")
    connect = b"\\x10\\x0d\\x00\\x04MQTT\\x04\\x02\\x00\\x00\\x00\\x01c"
    topic = b"$CONTROL/tidegate/uplink"
    body = len(topic).to_bytes(2) + topic + b"\\x00\\x01resume"
    gateway.sendall(connect + bytes([0x32, len(body)]) + body)
    print(gateway.recv(4, socket.MSG_WAITALL).hex(), gateway.recv(4, socket.MSG_WAITALL).hex())
"""
"""What `tidegate uplink resume` says, for which paho is missing in there."""

DONE = "20020000 40020001"


class Service:
    """The service in there."""

    def __init__(self, systemd: BootedSystemd) -> None:
        self.systemd = systemd

    def order(self, verb: str) -> None:
        done = self.systemd.run("systemctl", verb, "tidegate")
        assert done.returncode == 0, done.stderr + self.log()

    def property(self, name: str) -> str:
        return self.systemd.run("systemctl", "show", f"-P{name}", "tidegate").stdout.strip()

    def log(self) -> str:
        return self.systemd.run("journalctl", "--no-pager", "-u", "tidegate").stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Boot, with everything installed and the service enabled."""
    systemd = BootedSystemd(tmp_path_factory.mktemp("booted"))
    systemd.install_tidegate()
    systemd.install(SYSTEMD / "sysusers.conf", "/usr/lib/sysusers.d/tidegate.conf")
    systemd.install(SYSTEMD / "tmpfiles.conf", "/usr/lib/tmpfiles.d/tidegate.conf")
    systemd.install(SYSTEMD / "tidegate.service", "/usr/lib/systemd/system/tidegate.service")
    try:
        systemd.start()
        for command in (("systemd-sysusers",), ("systemd-tmpfiles", "--create", "tidegate.conf")):
            done = systemd.run(*command)
            assert done.returncode == 0, done.stderr
        write(systemd, "/etc/tidegate/gateway.toml", CONFIG)
        assert systemd.run("chgrp", "tidegate", "/etc/tidegate/gateway.toml").returncode == 0
        yield Service(systemd)
    finally:
        systemd.stop()


@pytest.fixture
def service(installed: Service) -> Service:
    """Give the running service; its start returns when it has said that it is ready."""
    installed.order("start")
    return installed


def write(systemd: BootedSystemd, path: str, text: str) -> None:
    done = systemd.run("sh", "-c", 'mkdir -p "${1%/*}" && printf %s "$2" >"$1"', "sh", path, text)
    assert done.returncode == 0, done.stderr


def test_it_says_that_it_is_ready(service: Service) -> None:
    assert service.property("Type") == "notify"
    assert service.property("ActiveState") == "active", service.log()
    assert service.property("StatusText") == "gateway barn listens on 127.0.0.1:1883"


def test_it_works_in_its_sandbox(service: Service) -> None:
    asked = service.systemd.run("/opt/python/bin/python3", "-c", ASK)
    assert asked.stdout.strip() == "ok", asked.stderr + service.log()
    folder = service.systemd.run("stat", "-c%U:%G:%a", FOLDER, f"{FOLDER}/tidegate.db")
    assert folder.stdout.split() == ["tidegate:tidegate:750", "tidegate:tidegate:640"]


def test_commands_reach_it_by_its_socket(service: Service) -> None:
    run = service.systemd.run
    permissions = run("sh", "-c", "stat -c%U:%G:%a /run/tidegate/*.sock").stdout
    assert permissions.strip() == "tidegate:tidegate:660"
    write(service.systemd, "/etc/tidegate/gateway.toml", CONFIG + CLOSED)
    try:
        service.order("restart")
        assert "a socket of their own" in service.log()  # it warns of what the role closes
        done = run("/opt/python/bin/python3", "-c", ORDER)
        assert done.stdout.strip() == DONE, done.stderr
        run("systemctl", "kill", "--signal=KILL", "tidegate")  # and is started anew
        service.systemd.until(lambda: service.property("NRestarts") != "0", "it is started anew")
        service.systemd.until(
            lambda: run("/opt/python/bin/python3", "-c", ORDER).stdout.strip() == DONE,
            "the command reaches it again",
        )
    finally:
        write(service.systemd, "/etc/tidegate/gateway.toml", CONFIG)
        service.order("restart")


def test_a_reload_does_not_end_it(service: Service) -> None:
    process = service.property("MainPID")
    service.order("reload")
    assert "are read again" in service.log()
    assert service.property("MainPID") == process


def test_a_reload_succeeds_or_fails_as_its_file_says(service: Service) -> None:
    process = service.property("MainPID")
    write(service.systemd, "/etc/tidegate/gateway.toml", CONFIG + "[[listener]]\nport = 1884\n")
    service.order("reload")
    listens = "gateway barn listens on 127.0.0.1:1884"
    assert service.property("StatusText") == listens
    assert "changed         listener" in service.log()
    write(service.systemd, "/etc/tidegate/gateway.toml", CONFIG + "[[listener]]\nport = 99999\n")
    assert service.systemd.run("systemctl", "reload", "tidegate").returncode == 1
    status = service.systemd.run("systemctl", "status", "tidegate").stdout
    assert "Active: active (running)" in status, status
    refused = f"{listens}; reload refused: /etc/tidegate/gateway.toml: listener[0].port = 99999"
    assert service.property("StatusText").startswith(refused)
    assert "refused         /etc/tidegate/gateway.toml" in service.log()
    renamed = CONFIG.replace('"barn"', '"shed"')  # which waits for a restart
    write(service.systemd, "/etc/tidegate/gateway.toml", renamed)
    service.order("reload")
    assert service.property("StatusText") == "gateway barn listens on 127.0.0.1:1883"
    write(service.systemd, "/etc/tidegate/gateway.toml", CONFIG)
    service.order("reload")
    assert service.property("MainPID") == process


def test_a_stop_is_in_good_order(service: Service) -> None:
    service.order("stop")
    assert service.property("ActiveState") == "inactive"
    assert (service.property("Result"), service.property("ExecMainStatus")) == ("success", "0")
    assert "stopping" in service.log()


def test_a_wrong_configuration_is_not_tried_again(service: Service) -> None:
    write(service.systemd, "/etc/tidegate/gateway.toml", "[gatway]\n")
    assert service.systemd.run("systemctl", "restart", "tidegate").returncode != 0
    service.systemd.until(lambda: service.property("ActiveState") == "failed", "it is given up")
    assert (service.property("ExecMainStatus"), service.property("NRestarts")) == ("2", "0")
    assert "did you mean gateway?" in service.log()
    write(service.systemd, "/etc/tidegate/gateway.toml", CONFIG)
    service.order("start")
    assert service.property("ActiveState") == "active"


def test_one_that_hangs_is_started_anew(service: Service) -> None:
    write(service.systemd, "/run/systemd/system/tidegate.service.d/hurry.conf", HURRY)
    assert service.systemd.run("systemctl", "daemon-reload").returncode == 0
    service.order("restart")
    process = service.property("MainPID")
    assert process != "0", service.log()  # which would be the process group of the tests
    service.systemd.run("kill", "-STOP", process)
    service.systemd.until(lambda: service.property("NRestarts") != "0", "it is started anew")
    service.systemd.until(lambda: service.property("ActiveState") == "active", "it is active again")
    assert service.property("MainPID") != process
    assert "Watchdog timeout" in service.log()
