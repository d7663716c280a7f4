"""Conversations with a broker as tables: what a client says and what it must hear, in bytes.

A step is a line of text:

    > 82 06 00 01 00 01 'a' 00    the client says these bytes
    < 90 03 00 01 00              and hears exactly these
    = 4                           nothing more comes before the answer to a PINGREQ (version 4)
    x                             the broker closes, having said nothing more
    x 81                          it closes with a DISCONNECT, or a CONNACK, of this reason code

Bytes are hexadecimal, text stands in quotes, `*300 78` repeats a byte.
"""

import re

from gateway.mqtt.packets import ConnAck, Disconnect
from tests.support.raw_client import RawClient

_TOKEN = re.compile(r"'([^']*)'|\*(\d+) ([0-9a-f]{2})|([0-9a-f]{2})")


def to_bytes(text: str) -> bytes:
    """Return the bytes that a step's text stands for."""
    data = b""
    rest = text.strip()
    while rest:
        token = _TOKEN.match(rest)
        assert token is not None, f"cannot read {rest!r}"
        quoted, count, repeated, plain = token.groups()
        if quoted is not None:
            data += quoted.encode()
        elif count is not None:
            data += bytes.fromhex(repeated) * int(count)
        else:
            data += bytes.fromhex(plain)
        rest = rest[token.end() :].lstrip()
    return data


async def converse(client: RawClient, steps: str) -> None:
    """Hold the conversation; fails at the first step that goes otherwise."""
    for line in filter(None, map(str.strip, steps.splitlines())):
        sign, text = line[0], line[1:].strip()
        if sign == ">":
            await client.send_bytes(to_bytes(text))
        elif sign == "<":
            await client.expect(to_bytes(text))
        elif sign == "=":
            assert not await client.waiting(), line
        else:
            await _expect_end(client, text)


async def _expect_end(client: RawClient, code: str) -> None:
    packets = await client.until_closed()
    if not code:
        assert not packets, packets
        return
    (last,) = packets
    assert isinstance(last, Disconnect | ConnAck), last
    assert last.reason_code == int(code, 16), last
