import base64
import contextlib
import hashlib
import subprocess
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.errors import ConfigurationError
from gateway.server.passwords.file import MAXIMUM_BYTES, load
from gateway.server.passwords.hashing import hash_password
from tests.support.requirements import find_program
from tests.support.table import table

# Both were written by mosquitto_passwd 2.0.11 for the password "pässw:ord".
PASSWORD = "pässw:ord".encode()
SHA512 = (
    "$6$kd4RtYvxH6D0a6Rd$gGKN6tV5Gxu/Y6Rlx4CpLTZ9b2YV2TL6SppufSnjgDhJYyezSlOHwyL3wZTms59XW2PWHb/"
    "E98FVGgP8uBTCOQ=="
)
PBKDF2 = (
    "$7$101$9CaHfNzkzGt4GFiV$KPI1/Xq16VE56boRbICR/FkPA5Wv6hCFSOWTbqsHJngztlCtIceH1tVIwKh4CK1hnQQsC/"
    "ZnKMRgP0/EIRS/8Q=="
)
SALT, DIGEST = "kd4RtYvxH6D0a6Rd", SHA512.rpartition("$")[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "passwords"


def test_a_scrypt_hash_with_and_without_padding(path: Path) -> None:
    for hashed in (f"{SCRYPT}${KEY}", f"{SCRYPT}${KEY.rstrip('=')}"):
        path.write_text(f"user:{hashed}\n")
        assert load(path).check("user", PASSWORD)
        assert not load(path).check("user", b"x")


@pytest.mark.parametrize("cost", range(1, 11))
def test_every_cost_that_a_file_may_name_can_be_paid(path: Path, cost: int) -> None:
    path.write_text(f"user:{hash_password(PASSWORD, cost)}\n")
    users = load(path)
    assert users.check("user", PASSWORD)
    assert not users.check("user", b"x")


def test_what_is_written_is_read(path: Path) -> None:
    path.write_text(f"user:{hash_password(PASSWORD)}\n")
    users = load(path)
    assert not users.remembers("user", PASSWORD)
    assert not users.check("user", PASSWORD + b"x")
    assert users.check("user", PASSWORD)
    assert users.remembers("user", PASSWORD)
    assert not users.remembers("user", PASSWORD + b"x")
    assert not users.remembers("user", None)
    assert not users.remembers("other", PASSWORD)
    assert users.same(load(path), "user")
    path.write_text(f"user:{hash_password(PASSWORD)}\n")
    assert not users.same(load(path), "user")
    assert not users.same(load(path), "other")
    assert hash_password(PASSWORD).startswith("$scrypt$ln=14,r=8,p=1$")


@pytest.mark.parametrize("hashed", [SHA512, PBKDF2])
def test_check(path: Path, hashed: str) -> None:
    path.write_text(f"user:{hashed}\n")
    users = load(path)
    assert users.check("user", PASSWORD)
    assert not users.check("user", PASSWORD + b" ")
    assert not users.check("user", b"")
    assert not users.check("User", PASSWORD)
    assert not users.check("", PASSWORD)
    assert not users.check(None, PASSWORD)
    assert not users.check("user", None)


def test_comments_empty_lines_blanks_and_other_line_ends(path: Path) -> None:
    path.write_bytes(f"# users\r\n\r\n one : {PBKDF2} \r\n\n#two:x\nthrée:{SHA512}".encode())
    users = load(path)
    assert len(users) == 2
    assert users.check("one", PASSWORD)
    assert users.check("thrée", PASSWORD)


def test_blanks_that_only_unicode_knows_belong_to_a_name(path: Path) -> None:
    names = ["anna", "anna\xa0", "\u2028anna", "anna\x1c"]
    path.write_text("".join(f"{name}:{SHA512}\n" for name in names))
    assert [name for name, _ in load(path).users()] == names


def test_an_empty_file_has_no_users(path: Path) -> None:
    path.touch()
    users = load(path)
    assert len(users) == 0
    assert not users.check("user", b"")


SCRYPT = "$scrypt$ln=4,r=8,p=1$c2FsdHNhbHQ"
DERIVED = hashlib.scrypt(PASSWORD, salt=b"saltsalt", n=16, r=8, p=1, dklen=32)
KEY = base64.b64encode(DERIVED).decode()

BAD_LINES = [
    f"user:{SCRYPT.replace('ln=4', 'ln=18')}${KEY}",
    f"user:{SCRYPT.replace('ln=4', 'ln=0')}${KEY}",
    f"user:{SCRYPT.replace('r=8', 'r=9')}${KEY}",
    f"user:{SCRYPT.replace('ln=4,', '')}${KEY}",
    f"user:{SCRYPT}${KEY[:-4]}",
    f"user:{SCRYPT}",
    DIGEST,
    f"$6${SALT}${DIGEST}",
    "user:",
    "user:secret",
    f":{SHA512}",
    f"user:$5${SALT}${DIGEST}",
    "user:$argon2id$v=19$m=47104,t=1,p=1$c2FsdA$aGFzaA",
    f"user:$6${SALT}${DIGEST}$",
    f"user:$6$${DIGEST}",
    f"user:$6${SALT}$",
    f"user:$6${SALT}${DIGEST[:-4]}",
    f"user:$6${SALT}?${DIGEST}",
    f"user:$6${SALT}é${DIGEST}",
    f"user:$7${SALT}${DIGEST}",
    f"user:$7$0${SALT}${DIGEST}",
    f"user:$7$-1${SALT}${DIGEST}",
    f"user:$7$1000001${SALT}${DIGEST}",
    f"user:$7$²${SALT}${DIGEST}",
    f"user:$7${'9' * 5000}${SALT}${DIGEST}",
]


@table("line", BAD_LINES, ids=lambda line: line[:30])
def test_a_bad_line_is_named_without_its_password(path: Path, line: str) -> None:
    path.write_text(f"good:{SHA512}\n{line}\n")
    with pytest.raises(ConfigurationError) as raised:
        load(path)
    error = raised.value
    username, colon, secret = line.partition(":")
    if not colon:
        username, secret = "", line
    assert (error.file, error.key, error.value) == (str(path), "line 2", username)
    assert error.allowed.startswith("user:$scrypt$ln=14,")
    assert not secret or secret not in str(error)


def test_a_user_named_twice(path: Path) -> None:
    path.write_text(f"user:{SHA512}\nother:{SHA512}\nuser:{PBKDF2}\n")
    with pytest.raises(ConfigurationError, match=r"line 3 = 'user' .* line 1 names this one"):
        load(path)


def test_a_line_that_is_not_utf_8(path: Path) -> None:
    path.write_bytes(b"\nsecret\xff\n")
    with pytest.raises(ConfigurationError, match=r"line 2 = b'' .*: UTF-8 text"):
        load(path)
    path.write_bytes(b"\n\xff:secret\n")
    with pytest.raises(ConfigurationError, match=r"line 2 = b'\\xff' .*: UTF-8 text"):
        load(path)


def test_a_missing_file(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"passwords: No such file or directory$"):
        load(path)


def test_a_file_that_is_too_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAXIMUM_BYTES + 1)
    with pytest.raises(ConfigurationError, match="passwords: larger than 16777216 bytes"):
        load(path)


def test_an_unknown_user_costs_what_the_costliest_password_costs(path: Path) -> None:
    path.write_text(f"old:{SHA512}\nuser:{PBKDF2}\nslow:{PBKDF2.replace('101', '5000')}\n")
    users = load(path)
    with mock.patch("hashlib.pbkdf2_hmac", side_effect=hashlib.pbkdf2_hmac) as spy:
        assert not users.check("nobody", PASSWORD)
        assert not users.check("slow", PASSWORD)
    assert [call.args[3] for call in spy.call_args_list] == [5_000, 5_000]


@given(st.binary())
def test_whatever_a_file_holds_there_is_one_kind_of_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "passwords"
    path.write_bytes(content)
    with contextlib.suppress(ConfigurationError):
        assert len(load(path)) == 0


@pytest.mark.mosquitto
@pytest.mark.parametrize("method", ["sha512", "sha512-pbkdf2"])
def test_files_that_mosquitto_passwd_writes(path: Path, method: str) -> None:
    passwords = {"barn": "a", "thrée": "$7$:ü ", "x y": "0" * 200}
    path.touch()
    program = find_program("mosquitto_passwd")
    for username, password in passwords.items():
        subprocess.run(
            [str(program), "-H", method, "-b", str(path), username, password],
            check=True,
            capture_output=True,
            timeout=60,
        )
    users = load(path)
    assert len(users) == len(passwords)
    for username, password in passwords.items():
        assert users.check(username, password.encode())
        assert not users.check(username, password.encode() + b"x")


def test_a_byte_order_mark_is_left_out(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + f"user:{PBKDF2}\n".encode())
    assert load(path).check("user", PASSWORD)
