"""Write docs/pictures/tui-outage.svg: the terminal UI in an outage of the fleet, and after."""

import asyncio
import html
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from rich.color import Color
from rich.style import Style
from textual.strip import Strip

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.processes.screen import press, until
from tui.address import parse_address
from tui.app import TidegateApp, colours_of
from tui.gateway_client import GatewayClient
from tui.theme import TIDE, TIDE_LIGHT

FILE = Path(__file__).resolve().parent.parent / "docs/pictures/tui-outage.svg"
CONFIG = """
[gateway]
id = "boiler-house"
[broker]
remembered_topics = 1000
sys_interval = 1
[[uplink]]
name = "plant"
url = "mqtt://127.0.0.1:{fleet}"
[[uplink.rule]]
topic = "sensors/#"
where = "DEADBAND(payload.value, 0.5)"
[[uplink]]
name = "cloud"
directory = "{folder}/landing"
[[uplink.rule]]
topic = "sensors/+/temperature"
"""
COLUMNS, LINES = 90, 26
HEALTHY, DOWN, BACK = 8, 24, 12
"""seconds of the film: before the outage, of it, and after it"""
SPEED = 4
"""how many times faster it is shown"""
RATE = 30
"""readings a second"""
CELL, HIGH = 8.4, 17
"""a character's size, in pixels"""

DARK = {colour.lower(): name for name, colour in colours_of(TIDE).items()}
LIGHT = colours_of(TIDE_LIGHT)
"""the colours of the two themes, which have the same names"""
GROUND, INK = (colours_of(TIDE)[name].lower() for name in ("background", "foreground"))

Frame = list[Strip]
Interval = tuple[int, int]


def main() -> None:
    """Play an outage, and draw it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "fleet").mkdir()
        fleet = Mosquitto(folder / "fleet")
        fleet.start()
        gateway = GatewayProcess(folder, CONFIG.format(fleet=fleet.port, folder=folder))
        gateway.start()
        try:
            with readings(gateway.port):
                frames = asyncio.run(play(f"mqtt://127.0.0.1:{gateway.port}", fleet))
        finally:
            gateway.kill()
            fleet.kill()
    FILE.write_text(svg(frames, "An outage and its end in the terminal UI"), encoding="utf-8")


@contextmanager
def readings(port: int) -> Iterator[None]:
    """Have readings of five nodes come."""
    client, stopping = Client(CallbackAPIVersion.VERSION2), threading.Event()
    client.connect("127.0.0.1", port)
    client.loop_start()

    def publish() -> None:
        number = 0
        while not stopping.wait(1 / RATE):
            number += 1
            node = ("boiler", "attic", "barn", "pump", "tank")[number % 5]
            value = 20 + number % 5 * 8 + (number // 5 * 7 % 40) / 10
            reading = f'{{"value":{value:.1f},"unit":"°C"}}'
            client.publish(f"sensors/{node}/temperature", reading)

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        yield
    finally:
        stopping.set()
        publisher.join()
        client.disconnect()
        client.loop_stop()


async def play(url: str, fleet: Mosquitto) -> list[Frame]:
    """Return what is shown each second."""
    app = TidegateApp(GatewayClient(parse_address(url)))
    frames: list[Frame] = []

    async def film(seconds: int) -> None:
        for _ in range(seconds):
            await asyncio.sleep(1)
            frames.append(list(app.screen._compositor.render_strips()))  # noqa: SLF001

    async with app.run_test(size=(COLUMNS, LINES)) as pilot:
        await until(lambda: app.session.state.incoming() is not None)
        await asyncio.sleep(20)
        await film(HEALTHY)
        fleet.kill()
        await film(DOWN // 2)
        await press(pilot, "4", "down")
        await film(DOWN // 4)
        await press(pilot, "1")
        await film(DOWN // 4)
        fleet.start()
        await film(BACK)
        app.session.quit()
    return frames


def svg(frames: list[Frame], title: str) -> str:
    """Return frames as an SVG that plays them again and again, in dark and light colours."""
    lines, columns = len(frames[0]), frames[0][0].cell_length
    spans: dict[Interval, list[str]] = {}
    for y in range(lines):
        begin = 0
        for at in range(1, len(frames) + 1):
            if at == len(frames) or frames[at][y] != frames[begin][y]:
                spans.setdefault((begin, at), []).append(drawn(frames[begin][y], y))
                begin = at
    seconds = len(frames) / SPEED
    style, body = [], []
    for number, ((begin, end), texts) in enumerate(sorted(spans.items())):
        first, last = 100 * begin / len(frames), 100 * end / len(frames)
        if last - first < 100:  # less than the whole time
            hidden = "" if begin == 0 else "0%{visibility:hidden}"
            after = "" if end == len(frames) else f"{last:.3f}%{{visibility:hidden}}"
            style.append(
                f"@keyframes k{number}{{{hidden}{first:.3f}%{{visibility:visible}}{after}}}"
            )
            style.append(f".k{number}{{animation:k{number} {seconds}s step-end infinite}}")
        body.append(f'<g class="k{number}">{"".join(texts)}</g>')
    wide, high = columns * CELL, lines * HIGH
    light = "".join(f".{name}{{fill:{LIGHT[name]}}}" for name in DARK.values())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high}" width="{wide:g}">'
        f"<title>{title}</title>"
        f"<style>text{{font:14px monospace;white-space:pre}}{''.join(style)}"
        f"@media (prefers-color-scheme:light){{{light}}}</style>"
        f'<rect width="100%" height="100%" rx="6" {fill(GROUND)}/>{"".join(body)}</svg>\n'
    )


def drawn(strip: Strip, y: int) -> str:
    """Return a line: its grounds that differ, and its texts, each as wide as its cells."""
    parts, x = [], 0
    for segment in strip.simplify():
        text, style = segment.text, segment.style or Style()
        cells = len(text)
        ground, ink = hexadecimal(style.bgcolor, GROUND), hexadecimal(style.color, INK)
        left, top = f"{x * CELL:g}", y * HIGH
        if ground != GROUND:
            box = f'x="{left}" y="{top}" width="{cells * CELL:g}" height="{HIGH}"'
            parts.append(f"<rect {box} {fill(ground)}/>")
        if text.strip():
            bold = ' font-weight="bold"' if style.bold else ""
            parts.append(
                f'<text x="{left}" y="{top + 13}" textLength="{cells * CELL:g}" {fill(ink)}{bold}>'
                f"{html.escape(text)}</text>"
            )
        x += cells
    return "".join(parts)


def fill(colour: str) -> str:
    """Return the attributes for a colour of the dark theme, and a class for the light one's."""
    return f'fill="{colour}" class="{DARK[colour]}"'


def hexadecimal(colour: Color | None, otherwise: str) -> str:
    """Return a colour as SVG has it."""
    return colour.triplet.hex if colour is not None and colour.triplet else otherwise


if __name__ == "__main__":
    main()
