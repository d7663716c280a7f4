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
    "i2c": 0,
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
    tables = zip(sensors, names, strict=True)
    return "\n".join((head, *(_sensor(kind, each, own) for each, own in tables)))


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


def _sensor(board: BoardKind, driver: str, own: str) -> str:
    kind = SENSORS[driver]
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
        lines.append(f"{name} = {_value(board, driver, name)}")
    return "\n".join(lines) + "\n"


def _value(board: BoardKind, driver: str, name: str) -> str:
    if name == "address":
        return f"0x{SENSORS[driver].addresses[0]:02x}"
    chosen = SENSORS[driver].chosen
    values = {
        **DEFAULTS,
        "sda": board.sda,
        "scl": board.scl,
        "clock": board.scl,
        "quantity": chosen,
        "pin": board.adc if driver == "adc" else board.pin,
        "unit": UNITS.get(chosen),
    }
    return json.dumps(values[name])
