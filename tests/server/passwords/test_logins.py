import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from gateway.broker.connecting.connection_info import Credentials
from gateway.broker.connecting.failed_logins import FailedLogins
from gateway.broker.instant import Instant
from gateway.server.passwords import logins as password_logins
from gateway.server.passwords.file import load
from gateway.server.passwords.hashing import Password, hash_password
from gateway.server.passwords.logins import PasswordLogins, PasswordThread

NOW = Instant(1.0, 1)


class Logins:
    """A thread, and those who log in with the passwords of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = FailedLogins(1.0)
        self.thread = PasswordThread(asyncio.get_running_loop(), lambda: NOW, self.failed)
        self.write(b"secret")
        self.users = PasswordLogins(load(path), self.thread, anonymous=False)
        self._decided: asyncio.Queue[str] = asyncio.Queue()

    def write(self, password: bytes) -> None:
        self.path.write_text(f"anna:{hash_password(password, cost=4)}\n")

    def check(self, name: str, password: bytes = b"x") -> bool:
        """Log in from the address that is the name's first letter."""
        credentials = Credentials(name[0], "anna", password)
        return self.thread.check(self.users, credentials, partial(self._decide, name))

    async def decisions(self, count: int) -> list[str]:
        """Return what is decided next, so many in order."""
        async with asyncio.timeout(60):
            return [await self._decided.get() for _ in range(count)]

    def _decide(self, name: str, right: bool | None, _: Instant) -> None:
        self._decided.put_nowait(f"{name} {right}")


@pytest.fixture
async def logins(tmp_path: Path) -> AsyncIterator[Logins]:
    logins = Logins(tmp_path / "users")
    yield logins
    logins.thread.close()


async def test_addresses_take_turns(logins: Logins) -> None:
    for name in ("a1", "a2", "a3", "a4", "b1", "c1"):
        assert logins.check(name, b"secret" if name == "b1" else b"x")
    order = await logins.decisions(6)
    names = [each.split()[0] for each in order]
    assert names == ["a1", "a2", "b1", "c1", "a3", "a4"], "a1 had begun"
    assert [each for each in order if each.endswith("True")] == ["b1 True"]


async def test_what_was_found_meanwhile_is_not_hashed(
    logins: Logins, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bytes] = []
    check = Password.check

    def counted(self: Password, password: bytes) -> bool:
        hashed.append(password)
        return check(self, password)

    monkeypatch.setattr(Password, "check", counted)
    for name in ("a1", "a2", "b1", "b2", "b3"):
        assert logins.check(name, b"secret")
    assert set(await logins.decisions(5)) == {
        f"{name} True" for name in ("a1", "a2", "b1", "b2", "b3")
    }
    assert hashed == [b"secret"]
    logins.failed.add(("c", "anna"), NOW.monotonic)
    for name in ("c1", "c2"):
        assert logins.check(name)
    assert await logins.decisions(2) == ["c1 False", "c2 False"]
    assert hashed == [b"secret"]


async def test_a_file_that_changes_meanwhile_counts(logins: Logins) -> None:
    for name in ("a1", "a2", "b1"):
        assert logins.check(name, b"secret")
    logins.write(b"other")
    logins.users.file = load(logins.path)
    assert set(await logins.decisions(3)) == {"a1 False", "a2 False", "b1 False"}


async def test_who_cannot_be_looked_at_is_told(
    logins: Logins, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Password, password: bytes) -> bool:
        raise MemoryError("no 128 MiB")

    monkeypatch.setattr(Password, "check", fail)
    for name in ("a1", "b1"):
        assert logins.check(name)
    assert await logins.decisions(2) == ["a1 None", "b1 None"]
    assert "the password of user 'anna' cannot be hashed: no 128 MiB" in caplog.text


async def test_bounds(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_logins, "MAXIMUM_WAITING", 3)
    monkeypatch.setattr(password_logins, "MAXIMUM_OF_ONE", 2)
    assert [logins.check(each) for each in ("a", "a", "a", "a", "b", "b")] == [
        *(True, True, True, False, True, False)  # the first is in the thread
    ]
