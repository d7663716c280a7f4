"""Runs the node on a board: copy it to the board beside the folder `node` and set it up here.

The six names in capitals are the settings; put your sensor's driver where SimulatedSensor is.
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


def node_name() -> str:
    """Return the set name, or one that no other board has."""
    return NAME or "node-" + hexlify(machine.unique_id()).decode()


def main() -> None:
    """Sample and send for ever."""
    node = Node(
        node_name(),
        int.from_bytes(os.urandom(4), "little"),
        machine.UART(UART, BAUD, rxbuf=RECEIVE_BUFFER),
        SimulatedSensor(),
        Uptime(),
        INTERVAL_MS,
        waiting_bytes=WAITING_BYTES,
    )
    while True:
        time.sleep(min(node.step(), POLL_MS) / 1000)


if __name__ == "__main__":
    main()
