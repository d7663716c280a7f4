"""Named packets as bytes and as objects: one table for decoder, encoder and framer."""

from tests.mqtt.cases import (
    acknowledgements,
    auth,
    connack,
    connect,
    disconnect,
    fixed_header,
    ping,
    publish,
    subscribe,
    unsubscribe,
)

PACKET_CASES = [
    *connect.PACKETS,
    *connack.PACKETS,
    *publish.PACKETS,
    *acknowledgements.PACKETS,
    *subscribe.PACKETS,
    *unsubscribe.PACKETS,
    *ping.PACKETS,
    *disconnect.PACKETS,
    *auth.PACKETS,
]

MALFORMED_CASES = [
    *fixed_header.MALFORMED,
    *connect.MALFORMED,
    *connack.MALFORMED,
    *publish.MALFORMED,
    *acknowledgements.MALFORMED,
    *subscribe.MALFORMED,
    *unsubscribe.MALFORMED,
    *ping.MALFORMED,
    *disconnect.MALFORMED,
    *auth.MALFORMED,
]
