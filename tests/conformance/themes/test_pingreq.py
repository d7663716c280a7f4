"""PINGREQ and PINGRESP: sections 3.12 and 3.13."""

import pytest

from gateway.mqtt.packets import MQTT_5
from tests.support.conversation import converse
from tests.support.raw_client import Clients
from tests.support.versions import VERSIONS

CASES = {
    "MQTT-3.12.4-1 a PINGRESP": """
        > c0 00
        < d0 00""",
    "two at once": """
        > c0 00 c0 00
        < d0 00 d0 00""",
    "flags": """
        > c1 00
        x""",
    "a body": """
        > c0 01 00
        x""",
    "a PINGRESP from a client": """
        > d0 00
        x""",
}
CODES = {"flags": "x 81", "a body": "x 81", "a PINGRESP from a client": "x 82"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
async def test_pingreq(clients: Clients, name: str, version: int, case: str) -> None:
    steps = CASES[case]
    if version == MQTT_5:
        steps = steps.replace("\n        x", f"\n        {CODES.get(case)}")
    await converse(await clients.connect(name, version), steps)
