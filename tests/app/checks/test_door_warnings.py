"""Listeners that let in more, or less, than their owner may think."""

from dataclasses import replace

from gateway.app.checks.warnings import admits_anonymous, door_warnings, uplink_warnings
from gateway.config.configuration import Configuration
from gateway.settings.access import AccessSettings, RoleSettings
from gateway.settings.listener import ListenerSettings
from gateway.settings.uplink import UplinkSettings

WEB = ListenerSettings(websocket=True)


def warned(listener: ListenerSettings, *roles: RoleSettings) -> list[str]:
    access = AccessSettings(roles=roles)
    return list(door_warnings(Configuration("file", "id", listeners=(listener,), access=access)))


def test_an_ordinary_listener_is_no_news() -> None:
    assert warned(ListenerSettings()) == []
    assert warned(replace(WEB, password_file="users", websocket_origins=("https://a",))) == []
    assert warned(replace(WEB, client_ca="ca")) == []


def test_a_websocket_listener_without_users() -> None:
    (warning,) = warned(WEB)
    assert warning.startswith("listener[0].websocket: no password is required, for pages of")
    (warning,) = warned(replace(WEB, websocket_origins=("https://panel.example",)))
    assert "pages of https://panel.example and" in warning


def test_origins_that_open_more_than_that() -> None:
    for origin, text in (("*", "accepts every page"), ("null", "is the origin of every file")):
        listener = replace(WEB, password_file="users", websocket_origins=("https://a", origin))
        (warning,) = warned(listener)
        assert warning.startswith(f'listener[0].websocket_origins: "{origin}" {text}')


def test_roles_that_close_loopback() -> None:
    sensor = RoleSettings("sensor", ("s-*",), write=("s/#",))
    (warning,) = warned(ListenerSettings(), sensor)
    assert "programs of this machine among them: give a role anonymous = true" in warning
    assert "by a socket of their own" in warning
    assert warned(ListenerSettings(), sensor, RoleSettings("guest", anonymous=True)) == []
    for listener in (
        ListenerSettings(password_file="users"),
        ListenerSettings(acl_file="acl"),
        ListenerSettings(path="socket"),
        ListenerSettings(allow_anonymous=False),
    ):
        assert warned(listener, sensor) == []


def test_who_is_let_in_without_a_user_name() -> None:
    assert admits_anonymous(ListenerSettings())
    assert admits_anonymous(ListenerSettings(password_file="users", allow_anonymous=True))
    assert not admits_anonymous(ListenerSettings(password_file="users"))
    assert not admits_anonymous(ListenerSettings(tls_identity="cn"))
    assert not admits_anonymous(ListenerSettings(allow_anonymous=False))


def test_passwords_that_the_network_reads() -> None:
    open_one = ListenerSettings(host="192.0.2.1", password_file="users")
    (warning,) = warned(open_one)
    assert warning.startswith("listener[0].password_file: passwords cross the network unencrypted")
    assert warned(replace(open_one, tls_certificate="c", tls_key="k")) == []
    for host in ("127.0.0.1", "::1", "localhost"):
        assert warned(replace(open_one, host=host)) == []
    assert warned(replace(open_one, password_file=None, allow_anonymous=True)) == []


def test_uplinks_that_are_not_encrypted() -> None:
    def of(url: str | None = None, ca: str | None = None, password: str | None = None) -> list[str]:
        uplink = UplinkSettings(urls=(url,) if url else (), ca_file=ca, password_file=password)
        return list(uplink_warnings(Configuration("file", "id", uplinks=(uplink,))))

    (warning,) = of(url="mqtt://fleet:1883", ca="ca")
    assert warning.endswith(
        "not used, since mqtt://fleet:1883 is not encrypted: write mqtts://fleet:1883"
    )
    (warning,) = of(url="ws://fleet/mqtt", password="p")
    assert "the password crosses the network unencrypted: write wss://fleet/mqtt" in warning
    assert of(url="mqtts://fleet", ca="ca", password="p") == []
    assert of(url="mqtt://localhost", password="p") == []
    assert of(url="mqtt://fleet") == of() == []


def test_a_mount_point_inside_a_level() -> None:
    assert warned(ListenerSettings(mount_point="site/")) == []
    (warning,) = warned(ListenerSettings(mount_point="site"))
    assert 'topic "a" of a client becomes "sitea"' in warning
