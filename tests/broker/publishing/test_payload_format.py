import pytest

from gateway.mqtt.packets import ConnAck, Connect, Disconnect, PubAck, Publish, PubRec, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness

INVALID = ReasonCode.PAYLOAD_FORMAT_INVALID
NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS
TEXT = Properties(payload_format_indicator=1)
BYTES = Properties(payload_format_indicator=0)

PAYLOADS = [
    (b"", TEXT, True),
    ("é\0𝄞".encode(), TEXT, True),
    (b"\xff", TEXT, False),
    (b"\xed\xa0\x80", TEXT, False),  # a surrogate
    (b"\xf4\x90\x80\x80", TEXT, False),  # beyond U+10FFFF
    (b"\xff", BYTES, True),
    (b"\xff", Properties(content_type="text/plain"), True),
    (b"\xff", Properties(), True),
]


@pytest.fixture
def strict() -> Harness:
    return Harness(BrokerSettings(check_payload_format=True))


@pytest.mark.parametrize(("payload", "properties", "valid"), PAYLOADS)
def test_a_payload_that_is_said_to_be_text_is_text(
    strict: Harness, payload: bytes, properties: Properties, *, valid: bool
) -> None:
    client = strict.connect()
    client.send(
        Publish("a", payload, 1, packet_id=1, properties=properties),
        Publish("a", payload, 2, packet_id=2, properties=properties),
    )
    code = NOBODY if valid else INVALID
    assert client.take() == [PubAck(1, code), PubRec(2, code)]
    client.send(Publish("a", payload, properties=properties))
    assert client.closed() != valid
    codes = [packet.reason_code for packet in client.take() if isinstance(packet, Disconnect)]
    assert codes == [] if valid else [INVALID]
    assert strict.counters.count("tidegate/refused/payload_formats") == (0 if valid else 3)


def test_each_of_several_is_checked(strict: Harness) -> None:
    client = strict.connect()
    client.send(
        *(
            Publish("a", payload, 1, packet_id=number, properties=TEXT)
            for number, payload in enumerate((b"1", b"2", b"\xff", b"4"), start=1)
        )
    )
    codes = [NOBODY, NOBODY, INVALID, NOBODY]
    assert client.take() == [PubAck(number, code) for number, code in enumerate(codes, start=1)]


@pytest.mark.parametrize(("payload", "properties", "valid"), PAYLOADS)
def test_so_is_that_of_a_will(
    strict: Harness, payload: bytes, properties: Properties, *, valid: bool
) -> None:
    client = strict.open()
    client.send(Connect("c", will=Will("a", payload, properties=properties)))
    assert client.take_only(ConnAck).reason_code == (ReasonCode.SUCCESS if valid else INVALID)


def test_nothing_is_checked_unless_the_configuration_says_so(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("a")
    client.send(Publish("a", b"\xff", properties=TEXT))
    assert client.take() == [Publish("a", b"\xff", properties=TEXT)]
