"""Uplinks on a store, as the application makes them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.clock import Clock
from gateway.settings.uplink import UplinkSettings
from gateway.uplink.link.budget import Metering
from gateway.uplink.uplink import Uplink
from tests.support.disk.storage import Store, outbox_row, until

EPOCH = "00a1b2c3d4"


def uplink_settings(
    port: int | None = None, directory: Path | None = None, **fields: Any
) -> UplinkSettings:
    """Return settings for the gateway `barn`, towards a port of 127.0.0.1 or a directory."""
    values: dict[str, Any] = {"gateway_id": "barn", "epoch": EPOCH, "version": "0.1.0"}
    if port is not None:
        values["urls"] = (f"mqtt://127.0.0.1:{port}",)
    if directory is not None:
        values["directory"] = str(directory)
    if "url" in fields:
        fields["urls"] = (fields.pop("url"),)
    return UplinkSettings(**{**values, **fields})


def make_uplink(
    store: Store,
    settings: UplinkSettings,
    jitter: float = 0.0,
    metering: Metering | None = None,
    *,
    resume: bool = False,
    uplink: int = 1,
) -> Uplink:
    """Return an uplink that is not started; `jitter` is what its random source always gives."""
    return Uplink(
        settings,
        store.outbox,
        store.rejected,
        store.counters,
        Clock(),
        random=lambda: jitter,
        metering=metering,
        resume=resume,
        uplink=uplink,
    )


@asynccontextmanager
async def running(store: Store, settings: UplinkSettings) -> AsyncIterator[Uplink]:
    """Run an uplink; close it at the end, also when the test fails."""
    uplink = make_uplink(store, settings)
    await uplink.start()
    try:
        yield uplink
    finally:
        await uplink.close()


async def connected(uplink: Uplink) -> None:
    """Return once the link is up."""
    await until(lambda: uplink.state == "connected")


def add_rows(store: Store, first: int, last: int, stream: str = "main", **fields: Any) -> None:
    """Accept messages with the numbers from `first` to `last`, as one turn."""
    for seq in range(first, last + 1):
        store.outbox.add(outbox_row(seq, stream, **fields))
    store.writer.hand_over()


def folder_files(folder: Path) -> list[str]:
    """Return the names in a folder, hidden ones too."""
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
