"""Whom the certificate of a client names, and whether it lets the client in."""

import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.app.authenticators import Nobody
from gateway.mqtt.packets import ConnAck, Connect, PingReq
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.listener import ListenerSettings
from tests.support.disk.storage import until
from tests.support.places import Place, open_place
from tests.support.processes.certificates import Authority, Pair
from tests.support.raw_client import RawClient


@pytest.fixture
async def guarded(tmp_path: Path, authority: Authority, server_pair: Pair) -> AsyncIterator[Place]:
    """Give a place at which the certificate of a client says who it is."""

    def ask_for_certificates(listener: ListenerSettings) -> ListenerSettings:
        return replace(listener, client_ca=authority.ca_file, tls_identity="cn")

    opened = await open_place(
        "tls", tmp_path, authority, server_pair, authenticator=Nobody(), change=ask_for_certificates
    )
    yield opened
    await opened.close()


async def present(place: Place, pair: Pair | None) -> RawClient:
    """Return a client with this certificate; the server may refuse it a moment later."""
    if pair is not None:
        place.trust.load_cert_chain(pair.certificate, pair.key)
    return await place.open()


@pytest.mark.parametrize("username", [None, "bert"])
async def test_a_certificate_s_common_name_is_the_user_name(
    guarded: Place, authority: Authority, username: str | None
) -> None:
    client = await present(guarded, authority.issue("anna"))
    await client.connect_as("c", username=username)
    assert guarded.server.broker.sessions["c"].username == "anna"


@pytest.mark.parametrize("names", [(), ("anna", "root")])
async def test_a_certificate_that_names_nobody_lets_nobody_in(
    guarded: Place, authority: Authority, names: tuple[str, ...]
) -> None:
    client = await present(guarded, authority.issue(*names))
    await client.send(Connect("c", username="anna"))
    assert (await client.take(ConnAck)).reason_code == ReasonCode.BAD_USER_NAME_OR_PASSWORD


async def connect_as(place: Place, pair: Pair | None) -> None:
    client = await present(place, pair)
    await client.connect_as("c")  # with TLS 1.3 a client learns of its refusal here


Make = Callable[[Authority, Path], Pair | None]


def from_elsewhere(_: Authority, folder: Path) -> Pair:
    return Authority(folder, "elsewhere").issue("anna")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda _authority, _folder: None, id="none"),
        pytest.param(from_elsewhere, id="another authority's"),
        pytest.param(lambda authority, _folder: authority.issue("anna", days=-1), id="expired"),
    ],
)
async def test_without_a_good_certificate_nobody_comes_in(
    guarded: Place, authority: Authority, tmp_path: Path, make: Make
) -> None:
    with pytest.raises((ssl.SSLError, EOFError, ConnectionError)):
        await connect_as(guarded, make(authority, tmp_path))
    await until(lambda: guarded.server.counters.count("tidegate/connections/tls_refused") == 1)
    assert not guarded.server.broker.sessions
    await until(lambda: guarded.server.counters.count("tidegate/connections/open") == 0)


async def test_certificates_without_an_identity_only_open_the_door(
    tmp_path: Path, authority: Authority, server_pair: Pair
) -> None:
    place = await open_place(
        "tls",
        tmp_path,
        authority,
        server_pair,
        change=lambda listener: replace(listener, client_ca=authority.ca_file),
    )
    client = await present(place, authority.issue("anna"))
    await client.connect_as("c", username="bert")
    assert place.server.broker.sessions["c"].username == "bert"
    await client.send(PingReq())
    await client.receive()
    await place.close()
