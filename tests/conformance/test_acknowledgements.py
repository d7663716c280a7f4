"""PUBACK, PUBREC, PUBREL and PUBCOMP that are none (MQTT 5, sections 3.4 to 3.7)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import ONLY_3, ONLY_5, Case, case_table
from tests.conformance.support.codes import MALFORMED, NOT_FOUND, PROTOCOL_ERROR
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, PUBCOMP, PUBREC, PUBREL, acknowledgement

ERROR = "5:4.13.1-1 3.1.1:4.8.0-1"


ACKNOWLEDGEMENTS = {"PUBACK": PUBACK, "PUBREC": PUBREC, "PUBREL": PUBREL, "PUBCOMP": PUBCOMP}
UNKNOWN_CODES = {
    "PUBACK": (0x01, 0x04, 0x11, 0x81, 0x92, 0xFF),
    "PUBREC": (0x01, 0x04, 0x11, 0x81, 0x92, 0xFF),
    "PUBREL": (0x01, 0x10, 0x80, 0x91),
    "PUBCOMP": (0x01, 0x10, 0x80, 0x91),
}
NUMBER = {"PUBACK": "3.4", "PUBREC": "3.5", "PUBREL": "3.6", "PUBCOMP": "3.7"}

BROKEN_ACKNOWLEDGEMENTS = [
    case
    for name, first_byte in ACKNOWLEDGEMENTS.items()
    for case in (
        Case(ERROR, f"an empty {name}", bytes([first_byte, 0])),
        Case(ERROR, f"{name} with half an identifier", bytes([first_byte, 1, 0])),
        Case(
            f"{ERROR} 5:2.2.1-5 3.1.1:2.3.1-6",
            f"{name} of identifier 0",
            acknowledgement(first_byte, 0),
            PROTOCOL_ERROR,
        ),
        Case(
            ERROR, f"{name} with a reason code", acknowledgement(first_byte, 1, 0), versions=ONLY_3
        ),
        Case(
            ERROR, f"{name} with a byte too many", wire.packet(first_byte, b"\x00\x01\x00\x00\x00")
        ),
        *(
            Case(
                f"5:{NUMBER[name]}.2-1 {ERROR}",
                f"{name} with code 0x{code:02X}",
                acknowledgement(first_byte, 1, code),
                MALFORMED,
                ONLY_5,
            )
            for code in UNKNOWN_CODES[name]
        ),
    )
]


@case_table(*BROKEN_ACKNOWLEDGEMENTS)
def test_a_broken_acknowledgement_ends_the_connection(
    peers: Peers, version: int, data: bytes, code: int
) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


@keeps("5:4.3.3-4")
@pytest.mark.parametrize("code", [0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])
@pytest.mark.parametrize("properties", [None, b""], ids=["", "with properties"])
def test_a_refusing_pubrec_for_an_unknown_message_is_not_answered(
    peers: Peers, code: int, properties: bytes | None
) -> None:
    peer = peers.connect()
    peer.send(acknowledgement(PUBREC, 1, code, properties))
    peer.expect_nothing()
    peer.send(acknowledgement(PUBREC, 1, 0x10, properties))
    peer.expect(acknowledgement(PUBREL, 1, NOT_FOUND))
