"""What is plugged in, and what runs on it, without a board that answers."""

import errno
import struct
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from serial import Serial, SerialException

from gateway.bridges.serial.port import PluggedIn, plugged_in
from gateway.bridges.serial.serial_frames import encode_frame
from gateway.flashing import port as port_module
from gateway.flashing.errors import BusyPortError, FlashingError
from gateway.flashing.flash import flash
from gateway.flashing.port import Port, open_port
from gateway.flashing.ports import runs_on
from tests.flashing.test_flash import Heard, received
from tests.support import waiting
from tests.support.nodes.serial_line import SerialLine
from tests.support.nodes.stand_in_board import StandInBoard


def test_usb_ports_are_listed_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    pico = SimpleNamespace(vid=0x2E8A, hwid="USB 2E8A:0005", manufacturer="Raspberry Pi")
    found = [
        SimpleNamespace(**vars(pico), product="Pico", device="/dev/ttyACM0"),
        SimpleNamespace(**vars(pico), product="Pico", device="/dev/serial/by-id/pico"),
        SimpleNamespace(
            vid=1, hwid="x", manufacturer=None, product=None, description="CP2102", device="/dev/t"
        ),
        SimpleNamespace(vid=None, device="/dev/ttyS0"),
    ]
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda **_: found)
    assert plugged_in() == [
        PluggedIn("/dev/serial/by-id/pico", "Raspberry Pi Pico"),
        PluggedIn("/dev/t", "CP2102"),
    ]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOENT, "/dev/t is not there: is the board plugged in?"),
        (errno.EACCES, "not allowed for this user: is it in the group dialout?"),
        (errno.EIO, "/dev/t: Input/output error"),
        (None, "/dev/t: broken"),
    ],
)
def test_why_a_port_does_not_open(
    number: int | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_settings: object) -> Serial:
        failure = SerialException("broken")
        failure.errno = number
        raise failure

    monkeypatch.setattr("serial.Serial", fail)
    monkeypatch.setattr(port_module, "APPEAR_SECONDS", 0.01)
    with pytest.raises(FlashingError, match=expected.replace("?", r"\?")):
        open_port(Port("/dev/t"), 0)
    assert runs_on(Port("/dev/t")) == "nothing that answers"


def test_a_port_that_is_in_use_is_borrowed_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = SerialLine(tmp_path / "ttyNODE")
    line.plug()
    gateway = Serial(Port(line.port).device, exclusive=True)
    assert runs_on(Port(line.port)) == "in use by another program, such as a running gateway"
    open_port(Port(line.port, gateway.close), 0).close()
    gateway = Serial(Port(line.port).device, exclusive=True)
    monkeypatch.setattr(port_module, "YIELD_SECONDS", 0.01)
    with pytest.raises(BusyPortError, match="another program has it open"):
        open_port(Port(line.port, lambda: None), 0)
    gateway.close()
    line.close()


def readings_frame(flags: int, quantity: bytes) -> bytes:
    head = struct.pack("<BBBIIQII", 1, 1, flags, 7, 1, 0, 0, 0)
    reading = bytes([255, len(quantity)]) + quantity + b"\0\1"
    return encode_frame(head + b"\5barn1\1" + reading)


@pytest.mark.parametrize(("flags", "quantity"), [(2, b"wind"), (0, b"safe_mode")])
def test_any_frame_of_a_node_is_enough(tmp_path: Path, flags: int, quantity: bytes) -> None:
    """It is not interrupted: one of an earlier start, or a heartbeat without samples."""
    line = SerialLine(tmp_path / "ttyNODE")
    line.plug()

    def answer() -> None:
        waiting.until(lambda: line.received() != b"", "the port is open")
        line.send(readings_frame(flags, quantity))

    thread = threading.Thread(target=answer)
    thread.start()
    assert runs_on(Port(line.port)) == "node barn1, sending"
    thread.join()
    assert line.received() == b"\0\2\r\0"
    line.close()


@pytest.mark.micropython
def test_a_board_in_its_repl_says_at_once_what_it_is(board: StandInBoard) -> None:
    """A quiet one is started again, and what it had not yet sent is sent then."""
    assert runs_on(Port(board.port)).endswith("no node on it yet")
    flash(Port(board.port), Heard(), {"name": "barn1", "interval_ms": 3600_000}, seconds=20)
    (frame, *_) = received(board.port, 1.2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gateway.flashing.ports.LISTEN_SECONDS", 1.5)
        assert "node version 0" in runs_on(Port(board.port))
    (after, *_) = received(board.port, 2)
    assert (after.boot != frame.boot, after.sequence) == (True, 1)
