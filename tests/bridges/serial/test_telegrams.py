"""Telegrams of meters and chargers: as their documents show them, whole, in pieces and damaged."""

from collections.abc import Iterator
from functools import reduce
from operator import xor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.serial.d0 import D0Decoder
from gateway.bridges.serial.dsmr import DsmrDecoder, crc16
from gateway.bridges.serial.sample import TelegramDecoder
from gateway.bridges.serial.serial_bridge import TelegramIntake
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.bridges.serial.sml import START, SmlDecoder
from gateway.bridges.serial.sml import crc16 as x25
from gateway.bridges.serial.vedirect import VeDirectDecoder
from tests.support.nodes.bridges import Gateway
from tests.support.table import table

SOLAR = {
    "PID": "0xA042",
    "FW": "150",
    "SER#": "HQ1728ABCDE",
    "V": "12800",
    "I": "-70",
    "VPV": "15950",
    "PPV": "130",
    "CS": "3",
    "ERR": "0",
    "LOAD": "ON",
    "IL": "300",
    "H19": "10230",
    "H20": "34",
}


def block(fields: dict[str, str]) -> bytes:
    """Return a block of VE.Direct, whose bytes have the sum 0."""
    body = "".join(f"\r\n{name}\t{value}" for name, value in fields.items()).encode()
    body += b"\r\nChecksum\t"
    return body + bytes([-sum(body) % 256])


P1 = """/ISK5\\2M550T-1012

1-3:0.2.8(50)
0-0:1.0.0(261120100000W)
0-0:96.1.1(4530303434303037)
1-0:1.8.1(000051.775*kWh)
1-0:1.8.2(000000.000*kWh)
1-0:2.8.1(000024.413*kWh)
0-0:96.14.0(0001)
1-0:1.7.0(00.335*kW)
1-0:2.7.0(00.000*kW)
0-0:96.7.21(00003)
1-0:99.97.0()
1-0:32.7.0(229.0*V)
1-0:52.7.0(226.0*V)
1-0:31.7.0(002*A)
1-0:21.7.0(00.378*kW)
0-1:24.1.0(003)
0-1:96.1.0(4730303339)
0-1:24.2.1(261120095500W)(00012.785*m3)
0-2:24.1.0(007)
0-2:24.2.1(261120095500W)(00099.001*m3)
!"""


def p1(text: str = P1) -> bytes:
    body = text.replace("\n", "\r\n").encode()
    return body + b"%04X\r\n" % crc16(body)


PUSHED = (
    b"/ESY5Q3DA1024 V3.04\r\n\r\n1-0:0.0.0*255(0273011003684)\r\n"
    b"1-0:1.8.0*255(00026107.7034231*kWh)\r\n1-0:1.8.0*01(00020000.0*kWh)\r\n"
    b"1-0:21.7.0*255(000094.85*W)\r\n1-0:1.7.0*255(000299.50*W)\r\n1-0:96.5.5*255(82)\r\n!\r\n"
)

LINES = (
    b"F.F(00000000)\r\nC.1(1234)\r\n1.8.1(001234.5*kWh)\r\n2.8.0(0.1*kWh)\r\n32.7(230*V)\r\n!\r\n"
)


def asked(lines: bytes = LINES) -> bytes:
    """Return the readout of a meter that was asked: with STX, ETX and a check."""
    checked = lines + b"\x03"
    return b"/LGZ4ZMF100\r\n\x02" + checked + bytes([reduce(xor, checked)])


def tlv(kind: int, content: bytes) -> bytes:
    return bytes([kind | len(content) + 1]) + content


def listed(*elements: bytes) -> bytes:
    if len(elements) < 16:
        return bytes([0x70 | len(elements)]) + b"".join(elements)
    return bytes([0xF0 | len(elements) >> 4, len(elements) & 15]) + b"".join(elements)


def entry(code: str, unit: int, scaler: int, value: int, size: int = 8) -> bytes:
    """Return a value of a list: name, status, time, unit, scaler, value, signature."""
    number = value.to_bytes(size, "big", signed=True)
    return listed(
        tlv(0x00, bytes.fromhex(code)),
        tlv(0x60, b"\x1e\x01\x04"),
        b"\x01",
        tlv(0x60, bytes([unit])),
        tlv(0x50, scaler.to_bytes(1, "big", signed=True)),
        tlv(0x50, number),
        b"\x01",
    )


def sml(*entries: bytes) -> bytes:
    """Return a telegram: an opening message, the list of values, and the check."""
    opening = listed(
        tlv(0x00, b"ab"), b"\x62\x00", b"\x62\x00", listed(tlv(0x60, b"\x01\x01"), b"\x01")
    )
    server, name = tlv(0x00, bytes.fromhex("0a01454d48")), tlv(0x00, b"\x1b" * 4)
    values = listed(b"\x01", server, name, b"\x01", listed(*entries), b"\x01", b"\x01")
    body = listed(tlv(0x60, b"\x07\x01"), values)
    message = listed(tlv(0x00, b"ac"), b"\x62\x00", b"\x62\x00", body, b"\x63\x12\x34", b"\x00")
    content = (opening + message).replace(b"\x1b" * 4, b"\x1b" * 8)
    fill = -len(content) % 4
    whole = (
        b"\x1b" * 4 + b"\x01" * 4 + content + bytes(fill) + b"\x1b" * 4 + b"\x1a" + bytes([fill])
    )
    return whole + x25(whole).to_bytes(2, "little")


METER = sml(
    entry("0100600100ff", 255, 0, 1),
    entry("0100010800ff", 30, -1, 261_077_034),
    entry("0100020800ff", 30, -1, 12),
    entry("0100100700ff", 27, 0, -299, 4),
    entry("0100200700ff", 35, -1, 2301, 2),
    *(entry("0100010800" + "05", 30, 0, 1) for _ in range(14)),
)

FORMATS: list[tuple[type[TelegramDecoder], bytes, dict[str, tuple[object, str | None]]]] = [
    (
        VeDirectDecoder,
        block(SOLAR),
        {
            "voltage": (12.8, "V"),
            "current": (-0.07, "A"),
            "voltage/panel": (15.95, "V"),
            "power/panel": (130, "W"),
            "charge_state": (3, None),
            "error_code": (0, None),
            "power_on/load": (True, None),
            "current/load": (0.3, "A"),
            "energy": (102.3, "kWh"),
            "energy/today": (0.34, "kWh"),
        },
    ),
    (
        VeDirectDecoder,
        block({"V": "26201", "SOC": "876", "TTG": "-1", "T": "---", "P": "x", "CE": "-13500"}),
        {"voltage": (26.201, "V"), "battery": (87.6, "%"), "charge_consumed": (-13.5, "Ah")},
    ),
    (
        DsmrDecoder,
        p1(),
        {
            "energy/t1": (51.775, "kWh"),
            "energy/t2": (0.0, "kWh"),
            "energy_returned/t1": (24.413, "kWh"),
            "power": (0.335, "kW"),
            "power_returned": (0.0, "kW"),
            "voltage/l1": (229.0, "V"),
            "voltage/l2": (226.0, "V"),
            "current/l1": (2.0, "A"),
            "power/l1": (0.378, "kW"),
            "gas": (12.785, "m³"),
            "water": (99.001, "m³"),
        },
    ),
    (
        D0Decoder,
        PUSHED,
        {"energy": (26107.7034231, "kWh"), "power/l1": (94.85, "W"), "power": (299.5, "W")},
    ),
    (
        D0Decoder,
        asked(),
        {"energy/t1": (1234.5, "kWh"), "energy_returned": (0.1, "kWh"), "voltage/l1": (230.0, "V")},
    ),
    (
        SmlDecoder,
        METER,
        {
            "energy": (26_107_703.4, "Wh"),
            "energy_returned": (1.2, "Wh"),
            "power_net": (-299, "W"),
            "voltage/l1": (230.1, "V"),
        },
    ),
]


def values(decoder: TelegramDecoder, data: bytes) -> Iterator[dict[str, tuple[object, str | None]]]:
    for telegram in decoder.feed(data):
        yield {
            "/".join(filter(None, (each.quantity, each.instance))): (each.value, each.unit)
            for each in telegram.values
        }


@table("make, data, expected", FORMATS)
def test_telegrams_whole_and_in_pieces(
    make: type[TelegramDecoder], data: bytes, expected: dict[str, object]
) -> None:
    assert list(values(make(), data)) == [expected]
    decoder = make()
    found = [each for byte in data * 2 for each in values(decoder, bytes([byte]))]
    assert found == [expected] * 2
    assert decoder.failed == decoder.skipped == 0


@table("make, data, expected", [each for each in FORMATS if each[1] != PUSHED])
@pytest.mark.uncovered
def test_one_damaged_byte_costs_the_telegram_and_no_other(
    make: type[TelegramDecoder], data: bytes, expected: dict[str, object]
) -> None:
    for place in range(len(data)):
        if data[place : place + 1].isdigit():
            damaged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            decoder = make()
            found = list(values(decoder, data + damaged + data))
            assert found == [expected] * len(found)
            assert len(found) <= 3
            assert len(found) == 3 or decoder.failed, place


def test_a_pushed_readout_with_a_line_that_is_none_is_refused() -> None:
    decoder = D0Decoder()
    assert list(values(decoder, PUSHED.replace(b"(000299.50*W)", b"(0002\x0099.50*W"))) == []
    assert decoder.failed == 1


def test_sml_that_is_damaged_but_checked_and_cut_off_telegrams() -> None:
    assert x25(b"123456789") == 0x906E
    for content in (b"\x77", b"\x75\x0f", b"\x7f" * 40, b"\x10", b"\x76\x01\x01\x01"):
        whole = START + content + bytes(-len(content) % 4) + b"\x1b" * 4 + b"\x1a\x00"
        decoder = SmlDecoder()
        list(decoder.feed(whole + x25(whole).to_bytes(2, "little")))
        assert decoder.failed == 1, content
    decoder = SmlDecoder()
    assert len(list(decoder.feed(METER[:50] + METER))) == 1
    assert decoder.failed == 1


def test_hex_messages_between_lines_count_in_no_sum() -> None:
    whole = block({"V": "12800", "I": "5"})
    place = whole.index(b"\r\nI") + 2
    decoder = VeDirectDecoder()
    mixed = whole[:place] + b":7F0ED0071\n" + whole[place:]
    assert list(values(decoder, whole[7:] + mixed)) == [
        {"voltage": (12.8, "V"), "current": (0.005, "A")}
    ]
    assert (decoder.failed, decoder.skipped) == (0, len(whole) - 7), "it began before it was heard"


def test_a_telegram_has_the_meters_time_and_one_without_a_check_is_of_an_old_meter() -> None:
    (telegram,) = DsmrDecoder().feed(p1())
    assert telegram.time == 1_795_165_200_000  # 2026-11-20T09:00:00Z
    old = P1.replace("1-3:0.2.8(50)\n", "").replace("261120100000W", "261120100000")
    (telegram,) = DsmrDecoder().feed(old.replace("\n", "\r\n").encode() + b"\r\n")
    assert telegram.time is None
    decoder = DsmrDecoder()
    assert list(decoder.feed(P1.replace("\n", "\r\n").encode() + b"\r\n")) == []
    assert decoder.failed == 1, "a check is missing that this version has"


def test_a_gas_meter_before_version_4_has_two_lines() -> None:
    gas = "0-1:24.1.0(3)\n0-1:24.3.0(121030140000)(00)(60)(1)(0-1:24.2.1)(m3)\n(00153.240)\n!\n"
    text = "/KMP5 KA6U001660297912\n\n1-0:1.8.1(08583.124*kWh)\n" + gas
    (found,) = values(DsmrDecoder(), text.replace("\n", "\r\n").encode())
    assert found == {"energy/t1": (8583.124, "kWh"), "gas": (153.24, "m³")}


def test_two_meters_of_a_kind_are_apart_by_their_channels() -> None:
    text = P1.replace("0-2:24.1.0(007)", "0-2:24.1.0(003)")
    (found,) = values(DsmrDecoder(), p1(text))
    assert (found["gas/1"], found["gas/2"]) == ((12.785, "m³"), (99.001, "m³"))


@given(
    st.sampled_from([VeDirectDecoder, DsmrDecoder, D0Decoder, SmlDecoder]), st.binary(max_size=400)
)
def test_noise_raises_nothing_and_is_bounded(make: type[Any], data: bytes) -> None:
    decoder = make()
    for _ in range(60):
        list(decoder.feed(data))
    assert len(decoder._pending) <= 8_192 + 400
    list(decoder.feed(b"\r\n" * 5000))
    assert list(values(make(), data + FORMATS[0][1])) is not None


def test_what_becomes_of_telegrams() -> None:
    gateway = Gateway.make()
    intake = TelegramIntake("mppt", gateway.host("serial", "tty"), VeDirectDecoder, "roof")
    whole = block({"V": "12800", "VPV": "15950"})
    intake.feed(whole + whole[:-1] + b"\x00" + whole[:9])
    intake.restart()
    intake.feed(b"x" * 3000 + whole)
    assert [(topic, each["value"]) for topic, each in gateway.broker.readings] == [
        ("sensors/mppt/voltage/roof", 12.8),
        ("sensors/mppt/voltage/roof-panel", 15.95),
    ]
    assert gateway.figure("serial/crc_errors") == 1
    assert gateway.figure("serial/telegrams") == 1
    assert gateway.counters.count("tidegate/serial/garbage_bytes") > 3000


def test_lines_are_set_up_as_formats_need_it() -> None:
    def line(**settings: Any) -> dict[str, Any]:
        return SerialSettings(port="/dev/x", **settings).line.settings

    usual = {"baudrate": 115_200, "bytesize": 8, "parity": "N", "stopbits": 1}
    assert line(format="dsmr") == line() == usual
    assert line(format="vedirect") == usual | {"baudrate": 19_200}
    assert line(format="d0") == usual | {"baudrate": 9_600, "bytesize": 7, "parity": "E"}
    given = {"baud": 300, "data_bits": 8, "parity": "odd", "stop_bits": 2}
    assert line(format="d0", **given) == {
        "baudrate": 300,
        "bytesize": 8,
        "parity": "O",
        "stopbits": 2,
    }
    made: list[dict[str, Any]] = [{"node": "{a}"}, {"instance": "{a}"}]
    for settings in made:
        with pytest.raises(ValueError, match="made of fields in dsmr"):
            SerialSettings(port="/dev/x", format="dsmr", **settings)
    with pytest.raises(ValueError, match="no meaning in raw"):
        SerialSettings(port="/dev/x", format="raw", instance="a")
