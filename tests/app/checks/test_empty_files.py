from pathlib import Path

from gateway.app.checks import warnings as empty_files
from gateway.app.checks.warnings import empty_file_warnings
from gateway.config.configuration import Configuration
from gateway.server.passwords.hashing import hash_password
from gateway.settings.listener import ListenerSettings
from tests.support.table import table

HASHED = hash_password(b"secret", cost=4)

FILES = [
    ("", "", ["acl has no rules", "users has no users"]),
    ("# nothing yet\n\n", " \n", ["acl has no rules", "users has no users"]),
    ("# Empty on purpose\n", "#empty on purpose\n", []),
    ("topic a\n", f"anna:{HASHED}\n", []),
    ("user anna\n", f"anna:{HASHED}\n", ["acl has no rules"]),
    ("nonsense\n", "", []),  # the check of the listener says it
]


@table("acl, users, said", FILES)
def test_what_says_nothing_is_told(tmp_path: Path, acl: str, users: str, said: list[str]) -> None:
    (tmp_path / "acl").write_text(acl)
    (tmp_path / "users").write_text(users)
    listener = ListenerSettings(
        acl_file=str(tmp_path / "acl"), password_file=str(tmp_path / "users")
    )
    found = list(empty_file_warnings(Configuration("file", "id", listeners=(listener,))))
    assert len(found) == len(said)
    for line, part in zip(found, said, strict=True):
        assert part in line
        assert line.startswith("listener[0].")
        assert line.endswith("say so in it: # empty on purpose")


def test_what_is_long_or_not_there_is_not_checked(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text("#\n" * empty_files.LARGEST_CHECKED)
    listeners = (
        ListenerSettings(acl_file=str(tmp_path / "acl")),
        ListenerSettings(acl_file="none"),
    )
    assert not list(empty_file_warnings(Configuration("file", "id", listeners=listeners)))
