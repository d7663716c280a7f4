"""Runs the node on a board: copy it to the board beside the folder `node` and set it up here.

The seven names in capitals are the settings; put your sensor's driver where SimulatedSensor is.
"""

import os
import time
from binascii import hexlify

import machine
from node.loop import Node
from node.simulated_sensor import SimulatedSensor
from node.uptime import Uptime

NAME = ""  # empty: "node-" and the board's serial number
UART = 1
BAUD = 115200
INTERVAL_MS = 10000
WAITING_BYTES = 40448  # memory for what cannot be sent yet: an hour of samples, one a second
RECEIVE_BUFFER = 512  # bytes; an acknowledgement has 18, and at most 8 are on their way
POLL_MS = 20
BLINK_MS = 125
LED: "int | str | None" = None  # pin that blinks for the command identify: "LED" on a Pico


def node_name() -> str:
    """Return the set name, or one that no other board has."""
    return NAME or "node-" + hexlify(machine.unique_id()).decode()


class Board:
    """What the board can do besides measuring."""

    def __init__(self, led: "int | str | None", clock: Uptime) -> None:
        self._led = None if led is None else machine.Pin(led, machine.Pin.OUT)
        self._clock = clock
        self._blinks_until = 0

    def identify(self, seconds: int) -> None:
        """Blink for so many seconds; ValueError where there is nothing to blink with."""
        if self._led is None:
            raise ValueError("LED")
        self._blinks_until = self._clock.ms() + 1000 * seconds

    def blink(self) -> None:
        """Switch the LED on or off, as its time has come."""
        if self._led is not None and self._blinks_until:
            left = max(self._blinks_until - self._clock.ms(), 0)
            self._led.value(left // BLINK_MS % 2)
            if not left:
                self._blinks_until = 0

    def restart(self) -> None:
        """Start anew, with another boot id."""
        machine.reset()


def main() -> None:
    """Sample and send for ever."""
    clock = Uptime()
    board = Board(LED, clock)
    node = Node(
        node_name(),
        int.from_bytes(os.urandom(4), "little"),
        machine.UART(UART, BAUD, rxbuf=RECEIVE_BUFFER),
        SimulatedSensor(),
        clock,
        INTERVAL_MS,
        waiting_bytes=WAITING_BYTES,
        board=board,
    )
    while True:
        board.blink()
        time.sleep(min(node.step(), POLL_MS) / 1000)


if __name__ == "__main__":
    main()
