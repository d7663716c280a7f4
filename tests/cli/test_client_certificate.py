"""A command shows a certificate of its own at a listener that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.control_request import Conversation
from gateway.cli.local_broker import LocalBroker
from gateway.errors import TidegateError
from tests.cli.test_local_broker import options
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess
from tui.address import AddressError, parse_address

CONFIG = """
[[listener]]
host = "127.0.0.1"
port = {plain}
[[listener]]
host = "localhost"
port = {port}
tls_certificate = "{server.certificate}"
tls_key = "{server.key}"
client_ca = "{ca}"
tls_identity = "cn"
"""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def url(tmp_path: Path, authority: Authority) -> Iterator[str]:
    port, server = free_port(), authority.issue("localhost")
    config = CONFIG.format(plain=free_port(), port=port, server=server, ca=authority.ca_file)
    gateway = GatewayProcess(tmp_path, config).start()
    yield f"mqtts://localhost:{port}"
    gateway.kill()


def test_a_listener_that_asks_for_a_certificate_lets_it_in(url: str, authority: Authority) -> None:
    pair = authority.issue("anna")
    own = {"cert": Path(pair.certificate), "key": Path(pair.key)}
    broker = LocalBroker.of(options(url, ca_file=Path(authority.ca_file), **own))
    with Conversation(broker):
        pass
    assert parse_address(url, None, None, Path(authority.ca_file), **own).tls is not None


def test_what_cannot_be_used_is_named(tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("anna", passphrase=b"secret")
    cert, key, none = Path(pair.certificate), Path(pair.key), tmp_path / "none"
    cases: list[tuple[Path | None, Path | None, str]] = [
        (none, None, f"{none}: No such file"),
        (cert, key, "has a passphrase"),
        (None, key, "only with"),
    ]
    for given, its_key, named in cases:
        with pytest.raises(TidegateError, match=named):
            LocalBroker.of(options("mqtts://localhost:1", cert=given, key=its_key)).connect()
        with pytest.raises(AddressError):
            parse_address("mqtts://localhost:1", cert=given, key=its_key)
    with pytest.raises(TidegateError, match="only with an mqtts"):
        LocalBroker.of(options("mqtt://localhost:1", cert=cert))
    with pytest.raises(AddressError, match="only with an mqtts"):
        parse_address("mqtt://localhost:1", cert=cert)
