import pytest

from tests.support.ports import free_port
from tests.support.processes.mosquitto import Mosquitto
from tests.support.processes.screen import connected, gone, press, rendered, shown, until
from tests.support.processes.tui_publisher import TOPICS, Publisher
from tui import uplink_order
from tui.address import Address
from tui.app import TidegateApp
from tui.clock import now
from tui.screens.help import Help
from tui.screens.sensor_detail import SensorDetail

pytestmark = pytest.mark.mosquitto


@pytest.mark.uncovered
async def test_the_gateway_and_its_uplink(application: TidegateApp, publisher: Publisher) -> None:
    publisher.tell(
        tidegate__gateway__id="barn",
        version="tidegate 0.1.0",
        uptime="7200 seconds",
        clients__connected=7,
        tidegate__uplink__state="disconnected",
        tidegate__uplink__error="connection refused",
        tidegate__uplink__destination="mqtts://fleet.example:8883",
        tidegate__outbox__rows=4912,
        tidegate__outbox__oldest_seconds=131,
        tidegate__outbox__bytes=12_300_000,
    )
    async with application.run_test(size=(120, 40)) as pilot:
        text = await shown(pilot, "barn", "4,912", "✕ disconnected")
    for part in ("tidegate 0.1.0", "up 2h 00m", "2m 11s", "12.3 MB", "! connection refused"):
        assert part in text
    assert "mqtts://fleet.example:8883" in text


@pytest.mark.uncovered
async def test_messages_per_second(application: TidegateApp, publisher: Publisher) -> None:
    publisher.tell(uptime="100 seconds", publish__messages__received=1_000)
    async with application.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "up 1m 40s")
        application.state.settle(now() + 1)
        publisher.tell(publish__messages__received=1_500, uptime="110 seconds")
        await shown(pilot, "50/s")


@pytest.mark.uncovered
async def test_sensors_with_value_unit_and_age(
    application: TidegateApp, publisher: Publisher
) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for value in (20, 24, 22):
            payload = f'{{"value":{value}.5,"unit":"°C","time":1763740000000}}'.encode()
            publisher.publish("sensors/barn/temperature", payload)
        text = await shown(pilot, "22.5", "Sensors 1")
    line = next(line for line in text.splitlines() if "barn/temperature" in line)
    assert line.split("┃")[1].split() == ["▌•", "barn/temperature", "22.5", "°C", "0s", "▁▇▄"]


@pytest.mark.uncovered
async def test_hostile_topics_and_payloads(application: TidegateApp, publisher: Publisher) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        publisher.publish("sensors/a/\u202e[bold]", b"\x1b[2J[/red]")
        publisher.publish("sensors/b/" + "x" * 300, b"1")
        publisher.publish("sensors/c/binary", b"\xff\xfe\x00")
        publisher.publish("sensors/d/deep", b"[" * 8_000)
        publisher.publish("sensors/e/large", b"9" * 60_000)
        publisher.publish("sensors/f", b'{"value":1e308}')
        publisher.publish("sensors/f", b'{"value":-1e308}')
        publisher.publish("sensors/g/wide", "温度計温度計温度計".encode())
        await shown(pilot, "Sensors 6", "1 topics too long", "(3 B) ff", "a/·[bold]", "·[2J[/red]")
        await shown(pilot, "g/wide")
        for topic in application.state.sensors.matching(""):
            await application.push_screen(SensorDetail(application.state, topic))
            await shown(pilot, "seen here", "escape: back")
            application.pop_screen()


async def test_ports_alarms_and_log(application: TidegateApp, publisher: Publisher) -> None:
    publisher.tell(
        tidegate__serial__ttyUSB0__state="open",
        tidegate__serial__ttyACM0__state="waiting",
        tidegate__serial__ttyACM0__error="no such device",
        tidegate__alarm__disk='{"raised": 1763740000000, "text": "the disk is full"}',
    )
    async with application.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "serial ttyUSB0 ● open", "serial ttyACM0 ◌ waiting", "no such device")
        await shown(pilot, "▲ ALARM disk since", "the disk is full")
        line = (
            b'{"time": 1763740000000, "level": "ERROR", "logger": "gateway.uplink.fleet.fleet",'
            b' "message": "[b]odd"}'
        )
        publisher.publish("told/broker/tidegate/log", line)
        await shown(pilot, "error   uplink [b]odd")
        publisher.publish("told/broker/tidegate/alarm/disk", b"", retain=True)
        await gone(pilot, "ALARM")


@pytest.mark.uncovered
async def test_the_gateway_goes_away_and_comes_back(
    application: TidegateApp, mosquitto: Mosquitto
) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        mosquitto.kill()
        text = await shown(pilot, "✕ NO CONNECTION", "◌ waiting", "Retry now")
        assert "figures" in text
        await shown(pilot, "connection refused", "attempt")
        mosquitto.start()
        await press(pilot, "r")
        text = await gone(pilot, "NO CONNECTION")
        assert text.count("info    screen connected to mqtt://") >= 1
        publisher = Publisher(mosquitto.port)
        publisher.publish("sensors/n1/t", b"21")
        await shown(pilot, "n1/t")
        publisher.close()


@pytest.mark.uncovered
async def test_the_uplink_is_paused_and_resumed(
    application: TidegateApp, publisher: Publisher
) -> None:
    publisher.tell(tidegate__uplink__state="connected")
    async with application.run_test(size=(100, 30)) as pilot:
        await shown(pilot, "Pause uplink", "│● connected")
        await press(pilot, "p")
        await shown(pilot, "ordered the uplink to pause")
        publisher.tell(tidegate__uplink__state="paused")
        await shown(pilot, "‖ paused", "the uplink is paused", "Resume uplink", "─‖ ▷")
        await press(pilot, "p")
        await shown(pilot, "ordered the uplink to resume")
        publisher.tell(tidegate__uplink__state="connecting")
        await shown(pilot, "the uplink is connecting", "Pause uplink")
    assert publisher.orders == ["pause", "resume"]


@pytest.mark.uncovered
async def test_a_pause_without_effect_is_told(
    application: TidegateApp, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uplink_order, "PATIENCE", 0.5)
    publisher.tell(tidegate__uplink__state="off")
    async with application.run_test(size=(120, 30)) as pilot:
        await shown(pilot, "○ off")
        await press(pilot, "p")
        await shown(pilot, "no effect after", "the uplink is off")


async def test_no_order_without_a_connection() -> None:
    nobody = TidegateApp(Address("127.0.0.1", free_port()), TOPICS)
    async with nobody.run_test(size=(100, 30)) as pilot:
        await shown(pilot, "NO CONNECTION")
        await press(pilot, "p")
        await shown(pilot, "no order to pause was sent")


@pytest.mark.uncovered
async def test_more_alarms_than_fit(application: TidegateApp, publisher: Publisher) -> None:
    for number in range(5):
        alarm = f'{{"raised": {1763740000000 + 1000 * number}, "text": "text {number}"}}'
        publisher.tell(**{f"tidegate__alarm__a{number}": alarm})
    async with application.run_test(size=(100, 30)) as pilot:
        text = await shown(pilot, "ALARM a4 since", "ALARM a2 since", "▲ and 2 more")
    assert text.index("a4") < text.index("a3") < text.index("a2")
    assert "ALARM a1" not in text


async def test_help_zoom_and_quit(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        await press(pilot, "question_mark")
        await shown(pilot, "Keys and signs", "pause or resume the uplink")
        await press(pilot, "question_mark")
        await gone(pilot, "Keys and signs")
        await press(pilot, "z")
        await gone(pilot, "─ Log")
        await press(pilot, "z")
        await shown(pilot, "─ Log")
        await press(pilot, "tab")
        await until(lambda: application.focused and application.focused.id == "side")
        await press(pilot, "tab")
        await until(lambda: application.focused and application.focused.id == "log")
        await press(pilot, "z")
        await gone(pilot, "Sensors 0")
        await press(pilot, "escape")
        await shown(pilot, "Sensors 0", "━ Log")
        await press(pilot, "q")
    assert not application.is_running


@pytest.mark.uncovered
@pytest.mark.parametrize("size", [(1, 1), (10, 4), (40, 12), (76, 20), (80, 24), (250, 80)])
async def test_every_size_of_terminal(
    application: TidegateApp, publisher: Publisher, size: tuple[int, int]
) -> None:
    publisher.tell(
        tidegate__gateway__id="barn",
        tidegate__uplink__state="paused",
        tidegate__outbox__rows=12,
        tidegate__alarm__disk='{"text": "the disk is full"}',
        tidegate__serial__tty__state="open",
    )
    async with application.run_test(size=(100, 30)) as pilot:
        await shown(pilot, "‖ paused", "ALARM disk")
        application.state.apply("sensors/n1/temperature", b"21.5", now())
        await shown(pilot, "21.5")
        await pilot.resize_terminal(*size)
        for screen in (Help(), SensorDetail(application.state, "sensors/n1/temperature")):
            await application.push_screen(screen)
            await until(lambda: rendered(application))
            application.pop_screen()
        for action in ("filter", "back", "zoom", "zoom"):
            await application.screen.run_action(action)
            await pilot._wait_for_screen()
        if size >= (40, 12):
            await shown(pilot, "barn", "‖ paused", "ALARM disk", "21.5")
        assert len(rendered(application).splitlines()) == size[1]


@pytest.mark.uncovered
async def test_without_colours_the_words_and_signs_remain(
    mosquitto: Mosquitto, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    application = TidegateApp(Address("127.0.0.1", mosquitto.port), TOPICS)
    publisher.tell(tidegate__uplink__state="disconnected", tidegate__alarm__a="full")
    async with application.run_test(size=(100, 30)) as pilot:
        await shown(pilot, "✕ disconnected", "▲ ALARM a", "● connected")
        colours = {
            segment.style.color.triplet
            for strip in application.screen._compositor.render_strips()
            for segment in strip.apply_filter(
                application._filters[0], application.screen.background_colors[1]
            )
            if segment.style is not None and segment.style.color is not None
        }
    assert all(triplet is None or len(set(triplet)) == 1 for triplet in colours)


async def test_channels(application: TidegateApp, publisher: Publisher) -> None:
    async with application.run_test(size=(100, 40)) as pilot:
        await connected(pilot)
        await press(pilot, "c")
        await shown(pilot, "no channels")
        publisher.tell(
            tidegate__channels__jobs__state="paused",
            tidegate__channels__jobs__depth=12_345,
            tidegate__channels__jobs__oldest_seconds="131",
            tidegate__channels=1,
        )
        screen = await shown(pilot, "Channels", "jobs", "paused", "12,345", "2m 11s")
        heads, cells = (line for line in screen.splitlines() if "state" in line or "jobs" in line)
        for head, cell in (("state", "paused"), ("waiting", "12,345"), ("oldest", "2m 11s")):
            assert heads.index(head) + len(head) == cells.index(cell) + len(cell)
        await press(pilot, "c")
        await gone(pilot, "12,345")
        assert not application.state.ports  # it is no bridge


async def test_one_of_several_uplinks_is_paused(
    application: TidegateApp, publisher: Publisher
) -> None:
    publisher.tell(
        tidegate__uplink__state="disconnected",
        tidegate__uplink__cloud__state="connected",
        tidegate__uplink__cloud__waiting=0,
        tidegate__uplink__cloud__acknowledged=4_711,
        tidegate__uplink__plant__state="disconnected",
        tidegate__uplink__plant__waiting=1_205,
        tidegate__uplink__plant__error="no route to host",
    )
    async with application.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "connected, 0 wait", "disconnected, 1,205 wait")
        await press(pilot, "u")
        text = await shown(pilot, "4,711", "where, or why not", "! no route to host")
        cloud, plant = (
            next(line for line in text.splitlines() if f" {name} " in line and state in line)
            for name, state in (("cloud", "● connected"), ("plant", "✕ disconnected"))
        )
        assert "4,711" in cloud
        assert "1,205" in plant
        await press(pilot, "down", "p")
        await shown(pilot, "ordered uplink plant to pause")
        publisher.tell(tidegate__uplink__plant__state="paused")
        await shown(pilot, "‖ paused", "uplink plant is paused")
        await press(pilot, "p")
        await shown(pilot, "ordered uplink plant to resume")
        publisher.tell(tidegate__uplink__plant__state="connected")
        await shown(pilot, "uplink plant is connected")
        await press(pilot, "u")
        await gone(pilot, "no route to host")
    assert publisher.orders == ["pause/plant", "resume/plant"]


async def test_the_only_uplink_is_listed_too(
    application: TidegateApp, publisher: Publisher
) -> None:
    async with application.run_test(size=(120, 40)) as pilot:
        await connected(pilot)
        await press(pilot, "u", "p")
        publisher.tell(
            tidegate__gateway__id="barn",
            tidegate__uplink__state="connected",
            tidegate__uplink__destination="mqtts://fleet.example",
            tidegate__outbox__rows=77,
        )
        text = await shown(pilot, "(the only one)", "mqtts://fleet.example")
        assert "77" in next(line for line in text.splitlines() if "(the only one)" in line)
        await press(pilot, "p")
        await shown(pilot, "ordered the uplink to pause")
    assert publisher.orders == ["pause"]


async def test_every_figure(application: TidegateApp, publisher: Publisher) -> None:
    publisher.tell(
        tidegate__storage__written_per_day=84_300_000,
        tidegate__storage__card_days=4_383,
        tidegate__rules__0__topic="sensors/#",
    )
    async with application.run_test(size=(100, 40)) as pilot:
        await connected(pilot)
        await shown(pilot, "written a day", "84.3 MB", "card lasts", "12 years")
        await press(pilot, "f")
        await shown(pilot, "Figures", "card days", "4,383 d", "0/topic", "sensors/#")
        await press(pilot, "f")
        await gone(pilot, "0/topic")
