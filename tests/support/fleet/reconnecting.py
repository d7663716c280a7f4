"""Uplinks that connect again sooner than a configuration allows."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import gateway.uplink.uplink as uplink_module
from gateway.uplink.link.backoff import Backoff

if TYPE_CHECKING:
    import pytest

    from gateway.settings.uplink import UplinkSettings


def backoff(
    first: float, longest: float, _settings: "UplinkSettings", random: Callable[[], float]
) -> Backoff:
    """Return the waits whatever the settings say."""
    return Backoff(first, longest, random)


def reconnect_after(monkeypatch: "pytest.MonkeyPatch", first: float, longest: float = 10.0) -> None:
    """Have every uplink wait so many seconds before its second attempt."""
    monkeypatch.setattr(uplink_module, "_backoff", partial(backoff, first, longest))
