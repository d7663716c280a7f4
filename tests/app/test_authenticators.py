import asyncio
import base64
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from gateway.app.authenticators import authenticator, password_file
from gateway.broker.connecting.connection_info import Authenticator, Credentials
from gateway.broker.connecting.failed_logins import FailedLogins
from gateway.broker.instant import Instant
from gateway.config.errors import ConfigurationError
from gateway.pieces import complete
from gateway.server.passwords.logins import PasswordThread
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    from gateway.app.authenticators import Passwords


@pytest.fixture
def passwords(tmp_path: Path) -> str:
    """Give the path of a file that knows anna, whose password is secret."""
    salt = b"0123456789ab"
    hashed = base64.b64encode(hashlib.sha512(b"secret" + salt).digest()).decode()
    path = tmp_path / "passwords"
    path.write_text(f"anna:$6${base64.b64encode(salt).decode()}${hashed}\n")
    return str(path)


NOBODY, ANNA, WRONG, BERT = (None, None), ("anna", b"secret"), ("anna", b"x"), ("bert", b"secret")


CLIENTS = (NOBODY, ANNA, WRONG, BERT)


class WithThread:
    """As much of a gateway as authenticators need."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.thread = PasswordThread(loop, lambda: Instant(0.0, 0), FailedLogins(1.0))
        self.it = cast("Passwords", SimpleNamespace(thread=lambda: self.thread))


def at(gateway: WithThread, listener: ListenerSettings) -> Authenticator:
    return authenticator(gateway.it, listener, complete(password_file(listener)))


async def decision(
    listener: ListenerSettings, username: str | None, password: bytes | None
) -> bool | None:
    """Return what is decided at such a listener; twice the same, remembered or not."""
    gateway = WithThread()
    who = at(gateway, listener)
    answers: asyncio.Queue[bool | None] = asyncio.Queue()
    found = []
    for _ in range(2):
        instant = Instant(0.0, 0)
        credentials = Credentials("192.0.2.7", username, password)
        who.check(credentials, instant, lambda right, _: answers.put_nowait(right))
        found.append(await answers.get())
    gateway.thread.close()
    assert found[0] == found[1]
    return found[0]


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
async def test_who_may_connect(
    passwords: str,
    anonymous: bool | None,
    has_file: bool,
    let_in: list[tuple[str | None, bytes | None]],
) -> None:
    listener = ListenerSettings(
        allow_anonymous=anonymous, password_file=passwords if has_file else None
    )
    assert [each for each in CLIENTS if await decision(listener, *each)] == let_in


async def test_a_password_file_that_is_missing_stops_the_start(tmp_path: Path) -> None:
    listener = ListenerSettings(password_file=str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="No such file"):
        await decision(listener, *ANNA)


async def test_where_certificates_name_clients_nobody_else_comes_in() -> None:
    listener = ListenerSettings(tls_certificate="c", client_ca="ca", tls_identity="cn")
    assert not [each for each in CLIENTS if await decision(listener, *each)]
