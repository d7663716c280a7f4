from pathlib import Path

import pytest

from gateway.app import access
from gateway.app.access import access_policies, access_warnings
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.settings.access import AccessSettings, RoleSettings
from gateway.settings.listener import ListenerSettings


def configuration(
    *listeners: ListenerSettings, roles: tuple[RoleSettings, ...] = ()
) -> Configuration:
    return Configuration("file", "id", listeners=listeners, access=AccessSettings(("olga",), roles))


def test_listeners_with_the_same_file_share_a_policy(tmp_path: Path) -> None:
    acl = tmp_path / "acl"
    acl.write_text("topic read a\n")
    same = ListenerSettings(acl_file=str(acl))
    first, second, third = access_policies(configuration(same, ListenerSettings(), same))
    assert first is third
    assert (first.restricted, second.restricted) == (True, False)
    assert "olga" in second.operators
    roles = (RoleSettings("all", ("*",), read=("x",), deny=("y",)),)
    (policy,) = access_policies(configuration(ListenerSettings(), roles=roles))
    sockets = ListenerSettings(path="a"), ListenerSettings(path="b", password_file="users")
    private, public = access_policies(configuration(*sockets, roles=roles))
    assert (private.restricted, public.restricted) == (False, True)
    anna = policy.access("anna", "c", local=True, proven=True)
    assert policy.restricted
    assert [anna.rights(topic) for topic in "xyz"] == [1, 0, 0]
    assert anna.explain("x") == ["role all: read x"]


WRONG = [
    (b"topic read a/#/b\n", "acl: line 1 = 'a/#/b' is not allowed: topic filter"),
    (b"topic read \xff\n", "acl: not UTF-8 at byte 11"),
    (b"#" * 200, "acl: larger than 100 bytes"),
]


def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MAXIMUM_BYTES", 100)
    acl = tmp_path / "acl"
    listener = ListenerSettings(acl_file=str(acl))
    with pytest.raises(ConfigurationError, match=r"acl: No such file"):
        access_policies(configuration(listener))
    for data, text in WRONG:
        acl.write_bytes(data)
        with pytest.raises(ConfigurationError) as raised:
            access_policies(configuration(listener))
        assert text in str(raised.value)


def test_a_role_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAXIMUM_OF_ONE", 2)
    monkeypatch.setattr(access, "MAXIMUM_ROLES", 2)
    good = RoleSettings("good", read=("a",))
    wrong = [
        ((good, RoleSettings("bad", deny=("a#",))), r"access.role\[1\].deny = 'a#' is not allowed"),
        ((RoleSettings("bad", read=("a", "b", "c")),), r"access.role\[0\] = 3 .* at most 2 topic"),
        ((good, good, good), "access.role = 3 is not allowed: at most 2 of them"),
    ]
    for roles, text in wrong:
        with pytest.raises(ConfigurationError, match=text):
            access_policies(configuration(ListenerSettings(), roles=roles))


def test_names_that_nobody_proves_are_warned_of() -> None:
    unproven = ListenerSettings(acl_file="acl")
    proven = ListenerSettings(acl_file="acl", password_file="users")
    (warning,) = access_warnings(configuration(proven, ListenerSettings(), unproven))
    assert warning.startswith("listener[2].acl_file: rules use user names, which nothing proves")


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    acl = tmp_path / "acl"
    acl.write_bytes(b"\xef\xbb\xbfuser anna\ntopic read x\n")
    (policy,) = access_policies(configuration(ListenerSettings(acl_file=str(acl))))
    assert policy.access("anna", "c", local=True, proven=True).rights("x") == 1
