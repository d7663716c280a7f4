import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config.errors import ConfigurationError
from gateway.config.load import load
from gateway.settings.listener import ListenerSettings
from tests.support.table import table

ROOT = Path(__file__).parents[2]

Read = Callable[[str], ListenerSettings]

TLS = "tls_certificate = 'c.pem'\n"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Give a function that reads a configuration with one listener."""

    def read(text: str) -> ListenerSettings:
        path = tmp_path / "gateway.toml"
        path.write_text(f"[gateway]\nid = 'a'\n[[listener]]\n{text}")
        (listener,) = load(path).listeners
        return listener

    return read


def test_every_key_of_a_tls_listener(read: Read) -> None:
    assert read(
        """
        host = "::"
        port = 8884
        tls_certificate = "c.pem"
        tls_key = "k.pem"
        client_ca = "ca.pem"
        tls_identity = "cn"
        websocket = true
        websocket_origins = ["https://panel.example"]
        maximum_connections = 500
        maximum_packet_size = 65536
        maximum_keep_alive = 60
        where_identity = false
        connection_rate = 0.5
        connection_burst = 20
        """
    ) == ListenerSettings(
        host="::",
        port=8884,
        tls_certificate="c.pem",
        tls_key="k.pem",
        client_ca="ca.pem",
        tls_identity="cn",
        websocket=True,
        websocket_origins=("https://panel.example",),
        maximum_connections=500,
        maximum_packet_size=65_536,
        maximum_keep_alive=60,
        where_identity=False,
        connection_rate=0.5,
        connection_burst=20,
    )


@pytest.mark.parametrize(
    ("text", "mode"), [("", 0o660), ("mode = '0600'", 0o600), ("mode = '666'", 0o666)]
)
def test_a_unix_socket(read: Read, text: str, mode: int) -> None:
    listener = read(f"path = '/run/tidegate/mqtt.sock'\n{text}")
    assert (listener.path, listener.mode) == ("/run/tidegate/mqtt.sock", mode)


@pytest.mark.parametrize("proof", ["client_ca = 'ca.pem'", "password_file = 'p'"])
def test_beyond_loopback_certificates_say_who_may_connect(read: Read, proof: str) -> None:
    assert read(f"host = '0.0.0.0'\n{TLS}{proof}").tls_certificate == "c.pem"


def test_tls_alone_says_nothing_about_who_may_connect(read: Read) -> None:
    with pytest.raises(ConfigurationError, match=r"listener\[0\].host = '0.0.0.0'.*client_ca"):
        read(f"host = '0.0.0.0'\n{TLS}")


def test_the_listeners_of_the_user_guide(tmp_path: Path) -> None:
    page = (ROOT / "docs/use/configuration.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(\[\[listener\]\].*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = tmp_path / "gateway.toml"
    path.write_text(f"[gateway]\nid = 'a'\n{example}")
    listeners = load(path).listeners
    assert listeners[0] == ListenerSettings()
    assert listeners[2].tls_identity == "cn"
    assert len(listeners) == 5


MISTAKES = [
    ("mode = '0600'", "mode", 0o600, "only together with path"),
    ("tls_key = 'k.pem'", "tls_key", "k.pem", "only together with tls_certificate"),
    ("client_ca = 'ca.pem'", "client_ca", "ca.pem", "only together with tls_certificate"),
    (f"{TLS}tls_identity = 'cn'", "tls_identity", "cn", "only together with client_ca"),
    ("websocket_origins = []", "websocket_origins", (), "only together with websocket"),
    ("websocket = false\nwebsocket_origins = []", "websocket_origins", (), "with websocket"),
    ("connection_burst = 3", "connection_burst", 3, "only together with connection_rate"),
    ("path = 's'\nhost = '::1'", "host", "::1", "either host or path, not both"),
    ("path = 's'\nport = 1", "port", 1, "either port or path, not both"),
    (
        f"{TLS}client_ca = 'ca'\ntls_identity = 'cn'\npassword_file = 'p'",
        "password_file",
        "p",
        "either password_file or tls_identity, not both",
    ),
    (
        f"{TLS}client_ca = 'ca'\ntls_identity = 'cn'\nallow_anonymous = true",
        "allow_anonymous",
        True,
        "either allow_anonymous or tls_identity, not both",
    ),
    ("path = ''", "path", "", "a text that is not empty"),
    (f"path = '{'a' * 108}'", "path", "a" * 108, "a path of at most 107 bytes"),
    (f"path = '{'ü' * 54}'", "path", "ü" * 54, "a path of at most 107 bytes"),
    ("path = 's'\nmode = 432", "mode", 432, 'octal digits, such as "0660"'),
    ("path = 's'\nmode = '0o660'", "mode", "0o660", "octal digits"),
    ("path = 's'\nmode = '4755'", "mode", "4755", "octal digits"),
    ("path = 's'\nmode = '0680'", "mode", "0680", "octal digits"),
    ("tls_certificate = 1", "tls_certificate", 1, "a text that is not empty"),
    ("tls_identity = 'dn'", "tls_identity", "dn", 'one of "cn"'),
    ("websocket = 'yes'", "websocket", "yes", "true or false"),
    ("websocket_origins = 'a'", "websocket_origins", "a", "a list of texts"),
    ("websocket_origins = ['panel.example']", "websocket_origins", ["panel.example"], "as https:"),
    ("websocket_origins = ['https://a/']", "websocket_origins", ["https://a/"], "without a path"),
    ("websocket_origins = ['a', '']", "websocket_origins", ["a", ""], "that are not empty"),
    ("websocket_origins = [1]", "websocket_origins", [1], "a list of texts"),
    ("maximum_connections = 0", "maximum_connections", 0, "from 1 to 1000000"),
    ("maximum_packet_size = 1023", "maximum_packet_size", 1023, "from 1024 to 268435456"),
    ("maximum_keep_alive = 0", "maximum_keep_alive", 0, "from 1 to 65535"),
    ("maximum_keep_alive = 65536", "maximum_keep_alive", 65_536, "from 1 to 65535"),
    ("connection_rate = 0", "connection_rate", 0, "a number from 0.01 to 100000"),
    ("connection_rate = inf", "connection_rate", float("inf"), "a number from 0.01 to"),
    ("connection_rate = 1\nconnection_burst = 0", "connection_burst", 0, "from 1 to 1000000"),
]


@table(("text", "key", "value", "allowed"), MISTAKES)
def test_a_mistake_names_key_value_and_what_is_allowed(
    read: Read, text: str, key: str, value: object, allowed: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(text)
    assert (raised.value.key, raised.value.value) == (f"listener[0].{key}", value)
    assert allowed in raised.value.allowed
