"""Secrets at a path, and among systemd's credentials."""

from pathlib import Path

import pytest

from gateway.app.checks.check import check_configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import read_document
from gateway.config.named_file import FOLDER, secret_path


def test_a_credential_is_a_file_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "fleet").write_text("secret")
    assert secret_path("credential:fleet") == tmp_path / "fleet"
    assert secret_path("/etc/password") == Path("/etc/password")
    uplink = {"url": "mqtt://fleet", "password_file": "credential:fleet"}
    check_configuration(*read_document("file", {"gateway": {"id": "barn"}, "uplink": uplink}))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("credential:../etc/shadow", "without slashes"),
        ("credential:", "a credential's name"),
        ("credential:fleet", "CREDENTIALS_DIRECTORY is not set"),
    ],
)
def test_one_that_is_not_there_is_a_mistake(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    uplink = {"url": "mqtt://fleet", "password_file": name}
    document = {"gateway": {"id": "barn"}, "uplink": uplink}
    with pytest.raises(ConfigurationError, match=said):
        check_configuration(*read_document("file", document))
