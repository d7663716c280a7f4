"""The figures on the screens, and the same figures as `mosquitto_sub` has them of `$SYS`."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.screen import press, rendered, shown, until
from tests.support.requirements import find_program
from tui import figures
from tui.app import TidegateApp
from tui.figures import shown as value_shown
from tui.text import amount, lasting, outage, span

pytestmark = [pytest.mark.uncovered, pytest.mark.mosquitto]

ROUND = 1.0
"""seconds between two rounds of figures"""
LATE = 1.0
"""seconds by which a busy machine may show one of the two later than the other"""
WINDOW = 10.0
"""seconds that the screens' rates are taken over"""
EACH_SECOND = 40
LEAST_COMPARED = 200
"""figures in the table of all of them that are compared"""


class Heard:
    """What `mosquitto_sub` prints of `$SYS`: every value of each figure, and when it came."""

    def __init__(self, port: int) -> None:
        program = find_program("mosquitto_sub")
        assert program is not None
        words = ["-V", "5", "-p", str(port), "-t", "$SYS/#", "-F", "%U %t %p"]
        self._process = subprocess.Popen([program, *words], stdout=subprocess.PIPE, text=True)
        self.values: dict[str, list[tuple[float, str]]] = {}
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            at, _, rest = text.rstrip("\n").partition(" $SYS/broker/")
            name, _, value = rest.partition(" ")
            if name.startswith("retained messages"):
                continue  # a name with a space: the table of all figures has it all the same
            self.values.setdefault(name, []).append((float(at), value))

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def lately(self, name: str, since: float) -> list[str]:
        """Return the values that a figure has had since then."""
        found = list(self.values.get(name, []))
        before = [value for at, value in found if at <= since][-1:]
        return before + [value for at, value in found if at > since]

    def rate(self, name: str, until: float) -> float:
        """Return the increase a second of a counter over the window that ends then."""
        found = [(at, float(value)) for at, value in self.values.get(name, []) if at <= until]
        if not found:
            return 0.0
        begin = [each for each in found if each[0] <= until - WINDOW][-1:] or found[:1]
        return (found[-1][1] - begin[0][1]) / WINDOW


@pytest.fixture
def heard(gateway: GatewayProcess) -> Iterator[Heard]:
    made = Heard(gateway.port)
    yield made
    made.end()


@pytest.fixture
def traffic(gateway: GatewayProcess) -> Iterator[None]:
    """A publisher of readings, half of which a rule filters, and of jobs that nobody takes."""
    client = Client(CallbackAPIVersion.VERSION2, "sender")
    client.connect("127.0.0.1", gateway.port)
    client.loop_start()
    ended = threading.Event()

    def send() -> None:
        count = 0
        while not ended.wait(1 / EACH_SECOND):
            count += 1
            value = json.dumps({"value": 10 + count % 20, "unit": "°C"})
            client.publish(f"sensors/n{count % 3}/t", value, qos=1)
            if not count % 10:
                client.publish("work/1", str(count), qos=1)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    ended.set()
    thread.join()
    client.disconnect()
    client.loop_stop()


Check = tuple[str, str, Callable[[str], str]]
"""A figure, the pattern of what shows it, and how its value is shown there."""


def counted(value: str) -> str:
    return amount(int(float(value)))


NOW: tuple[Check, ...] = (
    ("uptime", r"● up (.+?) [\[ ]", lambda value: lasting(float(value.split()[0]))),
    (figures.CLIENTS, r"(\S+) clients?, ", counted),
    (figures.OFFLINE, r"clients?, (\S+) offline", counted),
    (figures.OUTBOX_ROWS, r"│ (\S+) messages ", counted),
    (figures.OUTBOX_OLDEST, r"oldest   (\w+(?: \d\dm)?)", lambda value: lasting(float(value))),
    (figures.OUTBOX_SURVIVES, r"capacity ([\d.]+ \S+)", lambda value: outage(int(value))),
    (figures.OUTBOX_SURVIVES, r"outage (\S+ \S+)", lambda value: outage(int(value))),
    (figures.OUTBOX_SURVIVES, r"capacity for (.+?) ·", lambda value: outage(int(value))),
    ("tidegate/uplink/plant/waiting", r"✕ plant disconnected (\S+) wait", counted),
    ("tidegate/uplink/plant/waiting", r"· (\S+) wait, nothing lost", counted),
    ("tidegate/uplink/plant/state", r"✕ plant (\S+) ", str),
    ("tidegate/uplink/cloud/waiting", r"● cloud \S+ (\S+) behind", counted),
    ("tidegate/ledger/lost", r"lost   (\S+)", counted),
)
NEXT = "tidegate/uplink/plant/next_attempt_seconds"
QUEUES: tuple[Check, ...] = (
    ("tidegate/uplink/plant/state", r"plant .*✕ (\S+) ", str),
    ("tidegate/uplink/plant/waiting", r"plant .*✕ disconnected +(\S+) ", counted),
    ("tidegate/uplink/cloud/waiting", r"cloud .*● connected +(\S+) ", counted),
)


def differences(heard: Heard, checks: tuple[Check, ...], text: str, since: float) -> list[str]:
    """Return the figures that the screen shows as they were not in the last round."""
    found = []
    for name, pattern, show in checks:
        match = re.search(pattern, text)
        known = {show(each) for each in heard.lately(name, since)}
        if match is None or match[1] not in known:
            found.append(f"{name}: {match and match[1]} on the screen, {sorted(known)} by $SYS")
    return found


async def agreed(application: TidegateApp, wrong: Callable[[str, float], list[str]]) -> None:
    """Return when the screen agrees in all, as it always does unless the machine has paused."""
    reported: list[str] = ["nothing was compared"]

    def compare() -> bool:
        begun = time.time()
        application._tick()
        application._draw()
        reported[:] = wrong(rendered(application), begun - ROUND - LATE)
        return not reported and time.time() - begun < LATE

    await until(compare, lambda: "\n".join([*reported, rendered(application)]))


def all_figures(heard: Heard, compared: set[str], text: str, since: float) -> list[str]:
    """Return the rows of the table of all figures that `$SYS` has not had in the last round."""
    found = []
    rows = re.findall(r"^│ [▌ ] (\S+(?: \S+)?) {2,}(.+?) *│$", text, re.MULTILINE)
    for name, value in rows:
        known = {value_shown(name, each.encode()) for each in heard.lately(name, since)}
        compared.add(name)
        cut = value.removesuffix("…")
        agrees = value in known or (cut != value and any(each.startswith(cut) for each in known))
        if known and not agrees:
            found.append(f"{name}: {value} on the screen, {sorted(known)} by $SYS")
    return found if len(rows) > 10 else [f"only {len(rows)} rows"]


async def test_every_figure_that_both_have_agrees(
    application: TidegateApp, gateway: GatewayProcess, heard: Heard, traffic: None
) -> None:
    async with application.run_test(size=(160, 50)) as pilot:
        await shown(pilot, "barn ● up", "● cloud", "✕ plant", "capacity for")
        await agreed(application, partial(differences, heard, NOW))
        session = application.session
        await until(lambda: len(heard.values.get("uptime", [])) > WINDOW + 3)

        def rates(text: str, _: float) -> list[str]:
            names = (figures.RECEIVED, figures.ANSWERED, figures.REFUSED, figures.SENT,
                     figures.SYS_SENT, "tidegate/uplink/cloud/acknowledged")  # fmt: skip
            received, answered, refused, sent, reported, delivered = (
                heard.rate(each, time.time()) for each in names
            )
            questions = answered + refused
            found = []
            for name, pattern, rate in (
                ("in", r"in  +(\S+)/s", received - questions),
                ("out", r"out  +(\S+)/s", max(0.0, sent - reported - questions)),
                ("cloud", r"● cloud (\S+)/s", delivered),
            ):
                match = re.search(pattern, text)
                if match is None or abs(float(match[1]) - rate) > 3 + 0.15 * rate:
                    found.append(f"{name}: {match and match[1]}/s on the screen, {rate} by $SYS")
            return found

        await agreed(application, rates)
        incoming = session.state.incoming()
        assert incoming is not None
        assert incoming <= 1.5 * EACH_SECOND
        await press(pilot, "4")
        await shown(pilot, "[4 Queues]", "jobs")
        await agreed(application, partial(differences, heard, QUEUES))
        await press(pilot, "j")
        seconds: Check = (NEXT, r"next try  in (\w+)", lambda value: span(float(value)))
        await agreed(application, partial(differences, heard, (seconds,)))
        await press(pilot, "colon", *"figures", "enter")
        await shown(pilot, "docs/operate/sys-topics.md")
        compared: set[str] = set()
        table = partial(all_figures, heard, compared)
        rows = session.view.table
        assert rows is not None
        await until(lambda: len(rows.rows) > LEAST_COMPARED)
        await press(pilot, "g")
        await agreed(application, table)
        while rows.cursor < len(rows.rows) - 1:
            await press(pilot, "pagedown")
            await agreed(application, table)
        assert len(compared & heard.values.keys()) > LEAST_COMPARED
