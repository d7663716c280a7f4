"""Commands find the gateway of this machine by its socket, and need no user there."""

import errno
import os
import socket
from pathlib import Path

import pytest

from gateway.cli import own_gateway
from gateway.cli.local_broker import LocalBroker
from gateway.cli.own_gateway import closed_socket, default_url, error_at, socket_url, url_of
from gateway.cli.parser import LOCAL_BROKER
from gateway.cli.run_arguments import DATA
from gateway.config.operator_socket import folders_of, socket_name
from gateway.server.passwords.hashing import hash_password
from tests.cli.conftest import Command, MakeGateway
from tests.cli.test_local_broker import options

RUN = Path("run")

CONFIG = """
[[listener]]
password_file = "users"
[[access.role]]
name = "sensor"
users = ["sensor-*"]
write = ["sensors/%u/#"]
[[channel]]
name = "jobs"
filter = "jobs/#"
[uplink]
"""


@pytest.mark.uncovered
def test_every_command_works_where_roles_and_passwords_close_the_listeners(
    tmp_path: Path, tidegate: Command, make_gateway: MakeGateway
) -> None:
    (tmp_path / "users").write_text(f"anna:{hash_password(b'secret', cost=4)}\n")
    gateway = make_gateway(tmp_path, CONFIG, "--data", "var")
    gateway.start()
    gateway.kill()  # as in a power cut: its socket stays
    data = tmp_path / "var"
    owner = data.stat().st_uid
    (path,) = (
        folder / socket_name(data)
        for folder in folders_of(owner)
        if (folder / socket_name(data)).is_socket()
    )
    gateway.start()
    loopback = tidegate("uplink", "status", f"mqtt://127.0.0.1:{gateway.port}")
    assert (loopback.returncode, "Not authorized" in loopback.stderr) == (2, True)
    for command, output in (
        (("uplink", "pause"), "uplink: pause"),
        (("uplink", "status"), "state         paused"),
        (("uplink", "resume"), "uplink: resume"),
        (("channel", "list"), "jobs"),
        (("channel", "pause", "jobs"), "channel jobs: pause"),
        (("doctor", "--data", "var"), "memory: clients hold"),
    ):
        done = tidegate(*command)
        assert output in done.stdout, (command, done.stderr)
    assert tidegate("uplink", "status", f"mqtt+unix://{path}").returncode == 0
    assert tidegate("check", "gateway.toml").returncode == 0


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Give a data folder of somebody who works here, and one of the service."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_PASSWORD", raising=False)
    service = tmp_path / "service"
    monkeypatch.setattr(own_gateway, "FOLDERS", (DATA, service))
    monkeypatch.setattr(own_gateway, "folders_of", lambda _: [RUN])
    for folder in (DATA, service, RUN):
        folder.mkdir()
    return DATA, service


def listen(data: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(RUN / socket_name(data)))
    listening.listen()
    return listening


def test_the_gateway_that_was_started_here_comes_first(folders: tuple[Path, Path]) -> None:
    here, service = folders
    assert socket_url() is None
    assert LocalBroker.of(options(None)).url == default_url() == LOCAL_BROKER
    with listen(service):
        assert default_url() == f"mqtt+unix://run/{socket_name(service)}"
        with listen(here):
            assert default_url() == f"mqtt+unix://run/{socket_name(here)}"
            assert default_url("anna") == LOCAL_BROKER
        assert default_url() == f"mqtt+unix://run/{socket_name(service)}"  # the other is a leftover
        assert socket_url() == url_of(service)


def test_the_only_one_that_runs_is_taken_whatever_its_data_folder(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    urls = sorted(f"mqtt+unix://run/{socket_name(folder)}" for folder in (one, other))
    with listen(one):
        assert default_url() == f"mqtt+unix://run/{socket_name(one)}"
        with listen(other):
            broker = LocalBroker.of(options(None))
            output = f"several gateways run here, name one: {', '.join(urls)}"
            assert broker.name == f"{LOCAL_BROKER} ({output})"
            with listen(folders[1]):
                assert default_url() == f"mqtt+unix://run/{socket_name(folders[1])}"
    assert LocalBroker.of(options(None)).name == LOCAL_BROKER
    RUN.chmod(0o777)
    assert default_url() == LOCAL_BROKER
    RUN.rename("gone")
    assert default_url() == LOCAL_BROKER


def test_what_a_stranger_may_have_made_is_not_trusted(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = folders
    with listen(here):
        assert url_of(here) is not None
        RUN.chmod(0o777)
        assert url_of(here) is None
        RUN.chmod(0o755)
        monkeypatch.setattr(os, "geteuid", lambda: here.stat().st_uid + 1)
        assert (url_of(here) is None) == (here.stat().st_uid != 0)
        assert url_of(here.absolute()) is not None  # somebody named it


def test_a_socket_that_is_closed_to_this_user_is_named(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, service = folders
    assert closed_socket() is None
    path = RUN / socket_name(service)
    monkeypatch.setattr(own_gateway, "error_at", lambda asked: 13 if asked == path else 2)
    assert closed_socket() == path
    broker = LocalBroker.of(options(None))
    assert broker.name == f"{LOCAL_BROKER} ({path} is for root and the gateway's group)"
    assert LocalBroker.of(options("mqtt://a")).name == "mqtt://a"


def test_there_is_none_without_a_folder_or_in_a_path_that_is_too_long(tmp_path: Path) -> None:
    assert url_of(tmp_path / "none") is None
    assert error_at(Path("/" + "a" * 200)) == errno.ENAMETOOLONG
