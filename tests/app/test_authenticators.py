import base64
import hashlib
from pathlib import Path

import pytest

from gateway.app.authenticators import authenticator
from gateway.config.errors import ConfigurationError
from gateway.config.settings import Configuration, ListenerConfig


@pytest.fixture
def passwords(tmp_path: Path) -> str:
    """Give the path of a file that knows anna, whose password is secret."""
    salt = b"0123456789ab"
    hashed = base64.b64encode(hashlib.sha512(b"secret" + salt).digest()).decode()
    path = tmp_path / "passwords"
    path.write_text(f"anna:$6${base64.b64encode(salt).decode()}${hashed}\n")
    return str(path)


NOBODY, ANNA, WRONG, BERT = (None, None), ("anna", b"secret"), ("anna", b"x"), ("bert", b"secret")


@pytest.mark.parametrize(
    ("anonymous", "has_file", "let_in"),
    [
        (None, False, [NOBODY, ANNA, WRONG, BERT]),
        (True, False, [NOBODY, ANNA, WRONG, BERT]),
        (False, False, []),
        (None, True, [ANNA]),
        (False, True, [ANNA]),
        (True, True, [NOBODY, ANNA]),
    ],
)
def test_who_may_connect(
    passwords: str,
    anonymous: bool | None,
    has_file: bool,
    let_in: list[tuple[str | None, bytes | None]],
) -> None:
    listener = ListenerConfig(
        allow_anonymous=anonymous, password_file=passwords if has_file else None
    )
    configuration = Configuration("file", "id", listeners=(ListenerConfig(), listener))
    who = authenticator(configuration, 1)
    assert [each for each in (NOBODY, ANNA, WRONG, BERT) if who.check(*each)] == let_in


def test_a_password_file_that_is_missing_stops_the_start(tmp_path: Path) -> None:
    listener = ListenerConfig(password_file=str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="No such file"):
        authenticator(Configuration("file", "id", listeners=(listener,)), 0)


def test_where_certificates_name_clients_nobody_else_comes_in() -> None:
    listener = ListenerConfig(tls_certificate="c", client_ca="ca", tls_identity="cn")
    who = authenticator(Configuration("file", "id", listeners=(listener,)), 0)
    assert not any(who.check(*each) for each in (NOBODY, ANNA, WRONG, BERT))
