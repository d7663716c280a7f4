"""A link through a proxy, and proxies that refuse, lie or are away."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.proxies import Handler, http, lies, proxy, socks5
from tests.support.fleet.uplinks import add_rows, running, uplink_settings
from tests.support.ports import free_port

SECRET = "barn:p@ss:word"


def _keys(folder: Path, scheme: str, port: int, credentials: str | None) -> dict[str, Any]:
    keys: dict[str, Any] = {"proxy": f"{scheme}://127.0.0.1:{port}"}
    if credentials is not None:
        file = folder / "credentials"
        file.write_text(f"{credentials}\n")
        keys["proxy_credentials_file"] = str(file)
    return keys


@pytest.mark.parametrize("credentials", [None, SECRET])
@pytest.mark.parametrize(("scheme", "make"), [("http", http), ("socks5", socks5)])
async def test_rows_go_up_through_a_proxy(
    store: Store,
    tmp_path: Path,
    fleet_broker: FleetBroker,
    scheme: str,
    make: Any,
    credentials: str | None,
) -> None:
    add_rows(store, 1, 5)
    async with proxy(make(credentials)) as port:
        keys = _keys(tmp_path, scheme, port, credentials)
        async with running(store, uplink_settings(fleet_broker.port, **keys)):
            await until(lambda: store.outbox.rows == 0)


@pytest.mark.parametrize(
    ("scheme", "handler", "credentials", "said"),
    [
        ("http", http(SECRET), "barn:wrong", "407"),
        ("socks5", socks5(SECRET), "barn:wrong", "authentication"),
        ("http", lies, None, "proxy 127.0.0.1:"),
        ("socks5", lies, None, "proxy 127.0.0.1:"),
    ],
)
async def test_a_proxy_that_refuses_or_lies_is_named(
    store: Store,
    tmp_path: Path,
    fleet_broker: FleetBroker,
    scheme: str,
    handler: Handler,
    credentials: str | None,
    said: str,
) -> None:
    add_rows(store, 1, 5)
    async with proxy(handler) as port:
        keys = _keys(tmp_path, scheme, port, credentials)
        async with running(store, uplink_settings(fleet_broker.port, **keys)) as uplink:
            await until(lambda: uplink.state == "disconnected")
            assert f"proxy 127.0.0.1:{port}" in uplink.error
            assert said in uplink.error
            assert "wrong" not in uplink.error
    assert store.outbox.rows == 5


async def test_a_proxy_that_is_away_and_credentials_without_a_colon(
    store: Store, tmp_path: Path
) -> None:
    port = free_port()
    settings = uplink_settings(1, **_keys(tmp_path, "http", port, None))
    async with running(store, settings) as uplink:
        await until(lambda: uplink.state == "disconnected")
        assert f"proxy 127.0.0.1:{port} " in uplink.error
    settings = uplink_settings(1, **_keys(tmp_path, "http", port, "nothing"))
    async with running(store, settings) as uplink:
        await until(lambda: uplink.state == "disconnected")
        assert uplink.error.endswith("credentials does not hold USER:PASSWORD")
