"""The directory of landing records, if no broker of the fleet is named."""

from pathlib import Path

from gateway.settings.uplink import UplinkSettings

LANDING = "landing"
"""The default destination: a directory in the data folder."""


def landing_directory(config: UplinkSettings, data: Path) -> Path | None:
    """Return the directory of an uplink without a `url`, None with one."""
    if config.url is not None:
        return None
    return Path(config.directory) if config.directory else data / LANDING
