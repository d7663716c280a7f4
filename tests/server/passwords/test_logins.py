import asyncio
from functools import partial
from pathlib import Path

import pytest

from gateway.broker.access import Credentials
from gateway.broker.instant import Instant
from gateway.server.passwords import logins as password_logins
from gateway.server.passwords.file import PasswordFile, load
from gateway.server.passwords.hashing import hash_password
from gateway.server.passwords.logins import PasswordThread

NOW = Instant(1.0, 1)


@pytest.fixture
def users(tmp_path: Path) -> PasswordFile:
    path = tmp_path / "users"
    path.write_text(f"anna:{hash_password(b'secret', cost=4)}\n")
    return load(path)


async def test_addresses_take_turns(users: PasswordFile) -> None:
    thread = PasswordThread(asyncio.get_running_loop(), lambda: NOW)
    order: list[str] = []
    done = asyncio.Event()

    def decide(name: str, right: bool | None, _: Instant) -> None:
        order.append(f"{name} {right}")
        if len(order) == 6:
            done.set()

    for name in ("a1", "a2", "a3", "a4", "b1", "c1"):
        password = b"secret" if name == "b1" else b"x"
        credentials = Credentials(name[0], "anna", password)
        assert thread.check(users, credentials, partial(decide, name))
    await done.wait()
    thread.close()
    names = [each.split()[0] for each in order]
    assert names == ["a1", "a2", "b1", "c1", "a3", "a4"], "a1 had begun"
    assert [each for each in order if each.endswith("True")] == ["b1 True"]


async def test_bounds(users: PasswordFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_logins, "MAXIMUM_WAITING", 3)
    monkeypatch.setattr(password_logins, "MAXIMUM_OF_ONE", 2)
    thread = PasswordThread(asyncio.get_running_loop(), lambda: NOW)

    def check(address: str) -> bool:
        return thread.check(users, Credentials(address, "anna", b"x"), lambda right, now: None)

    assert [check(each) for each in ("a", "a", "a", "a", "b", "b")] == [
        *(True, True, True, False, True, False)  # the first is in the thread
    ]
    thread.close()
