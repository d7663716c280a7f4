import subprocess
import sys
from dataclasses import replace

import pytest

from gateway.cli.run import needs_tls
from gateway.config.load import bare
from gateway.settings.listener import ListenerSettings
from gateway.settings.uplink import UplinkSettings

LOOK = """
import sys
from gateway.cli.run import import_asyncio
{before}
import_asyncio(tls={tls})
early = "_ssl" in sys.modules
import asyncio, asyncio.sslproto, ssl
print(early, asyncio.sslproto.ssl is ssl)
"""


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("before", "tls", "early", "usable"),
    [
        ("", False, False, False),
        ("", True, False, True),  # whoever comes next imports both
        ("import ssl", False, True, True),  # it is there already
    ],
)
def test_asyncio_has_its_tls_only_if_wanted(
    before: str, tls: bool, early: bool, usable: bool
) -> None:
    code = LOOK.format(before=before, tls=tls)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str(early), str(usable)]


@pytest.mark.parametrize(
    ("certificate", "url", "needed"),
    [
        (None, None, False),
        ("server.pem", None, True),
        (None, "mqtts://fleet.example", True),
        (None, "wss://fleet.example/mqtt", True),
        (None, "mqtt://fleet.example", False),
    ],
)
def test_who_needs_tls(certificate: str | None, url: str | None, needed: bool) -> None:
    listeners = (ListenerSettings(), ListenerSettings(tls_certificate=certificate))
    uplink = UplinkSettings(urls=(url,) if url else ())
    assert needs_tls(replace(bare(1883), listeners=listeners, uplinks=(uplink,))) == needed


def test_a_bare_gateway_needs_none() -> None:
    assert not needs_tls(bare(1883))
