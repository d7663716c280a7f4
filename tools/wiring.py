"""Draw how each sensor is wired to a Pico: docs/pictures/wiring/<driver>.svg."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs/pictures/wiring"
WIDTH, ROW, TOP = 720, 46, 64
BOARD_RIGHT, SENSOR_LEFT = 250, 500

STYLE = """
    svg { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 15px }
    .page { fill: #ffffff } .part { fill: #eef6f8; stroke: #2b7a8c } .pin { fill: #2b7a8c }
    .name { fill: #16272e; font-weight: 600 } .note { fill: #4c626b; font-size: 13px }
    .power { stroke: #c0392b } .ground { stroke: #37474f }
    .data { stroke: #2b7a8c } .clock { stroke: #b7791f }
    .wire { stroke-width: 3; fill: none } .body { fill: #f6e7c8; stroke: #8a6d3b }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117 } .part { fill: #12262d; stroke: #48b4c6 } .pin { fill: #48b4c6 }
      .name { fill: #e3eef1 } .note { fill: #9fb4bb }
      .power { stroke: #ff7b6b } .ground { stroke: #b0bec5 }
      .data { stroke: #48b4c6 } .clock { stroke: #f0b95c }
      .body { fill: #4a3d22; stroke: #d9b26a }
    }
"""


@dataclass(frozen=True)
class Wire:
    """A line from a pin of the board to one of the sensor; `kind` is its colour."""

    board: str
    sensor: str
    kind: str


@dataclass(frozen=True)
class Wiring:
    """What is drawn, with a resistor between the last two wires, power and data."""

    title: str
    wires: tuple[Wire, ...]
    resistor: str = ""


POWER = Wire("3V3 (pin 36)", "VCC", "power")
GROUND = Wire("GND (pin 38)", "GND", "ground")
I2C = (
    Wire("3V3 (pin 36)", "VIN", "power"),
    GROUND,
    Wire("GP4 (pin 6)", "SDA", "data"),
    Wire("GP5 (pin 7)", "SCL", "clock"),
)
WIRINGS = {
    "bme280": Wiring("BME280", I2C),
    "bmp280": Wiring("BMP280", I2C),
    "bme680": Wiring("BME680 or BME688", I2C),
    "vl53l0x": Wiring("VL53L0X", I2C),
    "scd4x": Wiring("SCD40 or SCD41", I2C),
    "hx711": Wiring(
        "HX711",
        (
            GROUND,
            POWER,
            Wire("GP22 (pin 29)", "DT", "data"),
            Wire("GP5 (pin 7)", "SCK", "clock"),
        ),
    ),
    "sht3x": Wiring("SHT3x", I2C),
    "ds18b20": Wiring("DS18B20", (GROUND, POWER, Wire("GP22 (pin 29)", "DATA", "data")), "4.7 kΩ"),
    "dht22": Wiring("DHT22", (GROUND, POWER, Wire("GP22 (pin 29)", "DATA", "data")), "10 kΩ"),
    "adc": Wiring(
        "a voltage, 0 to 3.3 V", (GROUND, Wire("GP26 / ADC0 (pin 31)", "signal", "data"))
    ),
    "internal": Wiring("nothing: the chip measures itself", ()),
    "simulated": Wiring("nothing: its readings are made up", ()),
}


def picture(wiring: Wiring) -> str:
    """Return the SVG."""
    rows = max(len(wiring.wires), 2)
    height = TOP + ROW * rows + 24
    box = f'y="40" height="{height - 60}" rx="10"'
    text = "; ".join(f"{wire.board} to {wire.sensor}" for wire in wiring.wires) or wiring.title
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'role="img" aria-labelledby="title text">'
    )
    parts = [
        head,
        f'  <title id="title">Raspberry Pi Pico and {wiring.title}</title>',
        f'  <desc id="text">{text}</desc>',
        f"  <style>{STYLE}  </style>",
        f'  <rect class="page" width="{WIDTH}" height="{height}" rx="8"/>',
        f'  <rect class="part" x="30" width="{BOARD_RIGHT - 30}" {box}/>',
        '  <text class="name" x="30" y="28">Raspberry Pi Pico</text>',
        f'  <text class="name" x="{SENSOR_LEFT}" y="28">{wiring.title}</text>',
    ]
    if wiring.wires:
        right = WIDTH - 30 - SENSOR_LEFT
        parts.append(f'  <rect class="part" x="{SENSOR_LEFT}" width="{right}" {box}/>')
    else:
        parts.append(f'  <text class="note" x="46" y="{TOP + 20}">plug it in</text>')
    parts += [_wire(wire, TOP + ROW * row + 16) for row, wire in enumerate(wiring.wires)]
    if wiring.resistor:
        parts.append(_resistor(wiring.resistor, len(wiring.wires)))
    return "\n".join((*parts, "</svg>\n"))


def _wire(wire: Wire, y: int) -> str:
    return (
        f'  <path class="wire {wire.kind}" d="M{BOARD_RIGHT} {y}H{SENSOR_LEFT}"/>\n'
        f'  <circle class="pin" cx="{BOARD_RIGHT}" cy="{y}" r="6"/>'
        f'<circle class="pin" cx="{SENSOR_LEFT}" cy="{y}" r="6"/>\n'
        f'  <text class="name" x="{BOARD_RIGHT - 16}" y="{y + 5}" text-anchor="end">{wire.board}'
        f'</text><text class="name" x="{SENSOR_LEFT + 16}" y="{y + 5}">{wire.sensor}</text>'
    )


def _resistor(value: str, rows: int) -> str:
    """Draw a resistor between the last two wires."""
    bottom = TOP + ROW * (rows - 1) + 16
    x, top, middle = 410, bottom - ROW, bottom - ROW // 2
    return (
        f'  <path class="wire data" d="M{x} {top}V{bottom}"/>\n'
        f'  <rect class="body" x="{x - 9}" y="{middle - 14}" width="18" height="28" rx="4"/>\n'
        f'  <text class="note" x="{x + 18}" y="{middle + 5}">{value}</text>'
    )


def main() -> None:
    """Write all pictures."""
    for name, wiring in WIRINGS.items():
        (FOLDER / f"{name}.svg").write_text(picture(wiring), encoding="utf-8")


if __name__ == "__main__":
    main()
