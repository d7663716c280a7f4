"""Which hosts are this machine, and which a name server could make so."""

import socket

import pytest

from gateway.config.addresses import OwnHosts
from tests.support.table import table

HOSTS = [  # host, at a listener on loopback, at one on every address
    ("localhost", True, True),
    ("127.0.0.1", True, True),
    ("127.3.2.1", True, True),
    ("::1", True, True),
    ("::ffff:127.0.0.1", True, True),
    ("0:0:0:0:0:0:0:1", True, True),
    ("barn", True, True),
    ("barn.farm.example", True, True),
    ("barn.local", True, True),
    ("panel.example", True, True),
    ("192.168.1.5", False, True),
    ("2001:db8::1", False, True),
    ("::ffff:192.168.1.5", False, True),
    ("attacker.example", False, False),
    ("barn.attacker.example", False, False),
    ("localhost.attacker.example", False, False),
    ("127.0.0.1.attacker.example", False, False),
    ("127.1", False, False),
    ("2130706433", False, False),
    ("", False, False),
]


@table(("host", "on_loopback", "everywhere"), HOSTS)
def test_a_host(host: str, on_loopback: bool, everywhere: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "Barn.farm.example")
        named = ["Panel.example."]
        for bound in ("127.0.0.1", "::1", "localhost", None):
            assert (host in OwnHosts(bound, named)) == on_loopback, bound
        for bound in ("0.0.0.0", "::", "192.168.1.5", "sensors.lan"):
            assert (host in OwnHosts(bound, named)) == everywhere, bound
            assert bound in OwnHosts(bound)
