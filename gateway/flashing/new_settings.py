"""A settings file for a new node, with a comment at each key."""

import json

from gateway.flashing.hardware import BOARDS, SENSORS, BoardKind

HEAD = """\
# Settings of a node: {title}.
# Copy them to the board, with the node's program: tidegate firmware flash {file}

# {boards}
board = {board}

# The node's name in its topics: sensors/{name}/...
name = {name_quoted}

# Seconds between two samples, from 0.1.
interval = 10

# How the gateway is reached: "usb", the port that the board is plugged in with, "uart", "mqtt" by
# Wi-Fi, or "ble": readings are advertised by Bluetooth LE in the format BTHome.
# link = "usb"

# For link = "uart": which one, and bits a second. The gateway's [[serial]] says the same.
# uart = 1
# baud = 115200

# For link = "ble": 32 hexadecimal digits that encrypt the readings. The gateway's [[ble]] says the
# same. Take new ones when the board was erased: openssl rand -hex 16
# key = "..."

# KiB of the board's flash for samples that wait when the memory is full, an hour's at one a second.
# spill = 256

# Pin of an LED that shows how the node is, and which one; "LED" on a Pico.
# led = "LED"

# For link = "mqtt": the network, and the gateway, whose [[serial]] has port = "topic://nodes/{name}".
# [wifi]
# ssid = "..."
# password = "..."
# [broker]
# host = "192.168.1.2"
# username = "{name}"
# password = "..."
# ca_file = "ca.pem"   # TLS: the certificate that the gateway proves itself by
"""
COMMENTS = {
    "pin": "GPIO number of the pin that it is wired to, not the number printed at the edge.",
    "sda": "GPIO numbers of the data and the clock pin.",
    "i2c": "Which of the board's I2C buses has these pins.",
    "address": "Address on the bus: {addresses}.",
    "single": "Whether it is the only one on its wire; otherwise its address tells each apart, or\n"
    '# a name: names = {{ 28ff641e8216047c = "boiler" }}',
    "clock": "GPIO number of the pin for the clock.",
    "quantity": "What it stands for: value = volts (or steps of a load cell) * scale + offset.",
}
UNITS = {"voltage": "V", "weight": "kg"}
DEFAULTS = {
    "single": False,
    "scale": 1.0,
    "offset": 0.0,
}


def new_settings(board: str, sensors: list[str], name: str, file: str) -> str:
    """Return the text of a settings file for a board with these sensors."""
    kind = BOARDS[board]
    head = HEAD.format(
        title=f"a {kind.title} with {', '.join(sensors)}",
        file=file,
        boards="One of " + ", ".join(BOARDS) + ".",
        board=json.dumps(board),
        name=name,
        name_quoted=json.dumps(name, ensure_ascii=False),
    )
    names = sensor_names(sensors)
    free = Free(kind, only_sensor=len(sensors) == 1)
    tables = zip(sensors, names, strict=True)
    return "\n".join((head, *(_sensor(free, each, own) for each, own in tables)))


def sensor_names(drivers: list[str]) -> list[str]:
    """Return for each sensor the name that it needs beside the others, empty for none."""
    measured = [{*SENSORS[each].quantities, SENSORS[each].chosen} - {""} for each in drivers]
    names = []
    for index, driver in enumerate(drivers):
        others = measured[:index] + measured[index + 1 :]
        needed = driver != "ds18b20" and any(measured[index] & each for each in others)
        number = drivers[: index + 1].count(driver)
        own = driver if number == 1 else f"{driver}-{number}"
        names.append(own if needed else "")
    return names


class Free:
    """The pins and addresses of a board that no sensor has yet; when all are taken, the first."""

    def __init__(self, board: BoardKind, *, only_sensor: bool) -> None:
        self._board = board
        self._only_sensor = only_sensor
        self._pins = list(board.pins)
        self._adc = list(board.adc)
        self._addresses = [
            (bus, address)
            for bus in range(len(board.buses))
            for address in sorted({each for kind in SENSORS.values() for each in kind.addresses})
        ]

    def wiring(self, driver: str) -> dict[str, int | str]:
        """Return the values of the keys that say where a sensor is wired."""
        if driver == "adc":
            return {"pin": self._next(self._adc, self._board.adc[0])}
        addresses = SENSORS[driver].addresses
        if not addresses:
            pin = self._next(self._pins, self._board.pins[0])
            clock = self._board.buses[0][1]
            if driver == "hx711" and not self._only_sensor:  # the bus may have other sensors
                clock = self._next(self._pins, clock)
            return {"pin": pin, "clock": clock}
        places = [each for each in self._addresses if each[1] in addresses]
        bus, address = places[0] if places else (0, addresses[0])
        if places:
            self._addresses.remove(places[0])
        sda, scl = self._board.buses[bus]
        return {"sda": sda, "scl": scl, "i2c": bus, "address": f"0x{address:02x}"}

    def _next(self, pins: list[int], other: int) -> int:
        return pins.pop(0) if pins else other


def _sensor(free: Free, driver: str, own: str) -> str:
    kind = SENSORS[driver]
    chosen = {"quantity": kind.chosen, "unit": UNITS.get(kind.chosen), **DEFAULTS}
    values = {name: json.dumps(value) for name, value in chosen.items()} | free.wiring(driver)
    lines = [f"# {kind.title[0].upper()}{kind.title[1:]}.", "[[sensor]]", f'driver = "{driver}"']
    if own:
        lines.append("# Tells it from the others in its topics: sensors/<node>/<quantity>/<name>.")
        lines.append(f'name = "{own}"')
    for name in (*kind.keys, *kind.optional):
        if name == "names":
            continue
        if name in COMMENTS:
            choices = " or ".join(f"0x{each:02x}" for each in kind.addresses)
            lines.append("# " + COMMENTS[name].format(addresses=choices))
        lines.append(f"{name} = {values[name]}")
    return "\n".join(lines) + "\n"
