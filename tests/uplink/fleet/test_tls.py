"""mqtts:// speaks only to a server whose certificate is trusted."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import add_rows, connected, running, uplink_settings

FOLDER = Path(__file__).parents[2] / "support" / "tls"
CERTIFICATE = FOLDER / "server.pem"


@pytest.fixture
async def tls_broker() -> AsyncIterator[FleetBroker]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE, FOLDER / "server.key")
    broker = FleetBroker()
    await broker.start(context)
    yield broker
    await broker.stop()


@pytest.mark.uncovered
async def test_rows_go_up_over_tls(store: Store, tls_broker: FleetBroker) -> None:
    add_rows(store, 1, 500, payload=bytes(1_000))
    url = f"mqtts://localhost:{tls_broker.port}"
    async with running(store, uplink_settings(url=url, ca_file=CERTIFICATE)) as uplink:
        await until(lambda: store.outbox.rows == 0)
        assert uplink.state == "connected"
        tls_broker.drop()
        await until(lambda: uplink.state == "disconnected")
        await connected(uplink)
    assert len(tls_broker.data) == 500


async def test_an_unknown_certificate_is_refused(store: Store, tls_broker: FleetBroker) -> None:
    async with running(
        store, uplink_settings(url=f"mqtts://localhost:{tls_broker.port}")
    ) as uplink:
        await until(lambda: uplink.state == "disconnected")
        assert "signed by itself" in str(store.counters.values["tidegate/uplink/error"])
    assert tls_broker.connects == []


async def test_another_hosts_certificate_is_refused(store: Store, tls_broker: FleetBroker) -> None:
    url = f"mqtts://127.0.0.2:{tls_broker.port}"
    await tls_broker.stop()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE, FOLDER / "server.key")
    await tls_broker.start(context, host="127.0.0.2")
    async with running(store, uplink_settings(url=url, ca_file=CERTIFICATE)) as uplink:
        await until(lambda: uplink.state == "disconnected")
        assert "IP address mismatch" in str(store.counters.values["tidegate/uplink/error"])
