"""The table of sensors: filter, cursor, mouse and scrolling."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from textual.pilot import Pilot

from tests.support.processes.screen import connected, gone, press, rendered, shown, until
from tests.support.processes.tui_publisher import Publisher
from tui.app import TidegateApp
from tui.clock import now
from tui.screens.sensor_detail import SensorDetail
from tui.widgets.sensor_table import SensorTable

pytestmark = pytest.mark.mosquitto


async def test_the_filter(application: TidegateApp, publisher: Publisher) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for topic in ("barn/temperature", "barn/humidity", "roof/temperature"):
            publisher.publish(f"sensors/{topic}", b"1")
        await shown(pilot, "Sensors 3")
        await press(pilot, "slash")
        await shown(pilot, "/ words of the topic")
        await press(pilot, *"temp", "space", "q")
        await shown(pilot, "Sensors 0 of 3", "no sensor matches 'temp q'")
        await press(pilot, "backspace", "backspace", "enter")
        text = await shown(pilot, "Sensors 2 of 3")
        assert "barn/humidity" not in text
        publisher.publish("sensors/cellar/temperature", b"1")
        await shown(pilot, "Sensors 3 of 4", "cellar/temperature")
        await press(pilot, "escape")
        await shown(pilot, "Sensors 4", "barn/humidity")


async def test_the_details_of_a_sensor(application: TidegateApp, publisher: Publisher) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        publisher.publish("sensors/a", b"1")
        publisher.publish("sensors/b", b'{"value":21.5,"unit":"C","time":1763740000000}')
        await shown(pilot, "Sensors 2")
        await press(pilot, "down", "enter")
        await shown(
            pilot, "sensors/b", "21.5 C", "by the sender's clock", 'payload   {"value":21.5'
        )
        publisher.publish("sensors/b", b"22.5")
        await shown(pilot, "22 mean", "2 seen here")
        await press(pilot, "escape")
        await gone(pilot, "sender's clock")


@pytest.mark.uncovered
async def test_a_sensor_that_was_dropped_meanwhile(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        application.push_screen(SensorDetail(application.state, "sensors/gone"))
        await shown(pilot, "This sensor was dropped")


@pytest.mark.uncovered
async def test_thousands_of_sensors_are_bounded_and_counted(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for number in range(5_010):
            application.state.apply(f"sensors/n{number:04}/t", b"1", now())
        await shown(pilot, "Sensors 5,000", "10 sensors dropped", "n0010/t")
        await press(pilot, "end")
        await shown(pilot, "n5009/t")
        await press(pilot, "home", "pagedown", "up", "down")
        await shown(pilot, "n0020/t")


@pytest.mark.uncovered
async def test_the_cursor_stays_on_its_sensor(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for name in "bcd":
            application.state.apply(f"sensors/{name}", b"1", now())
        await shown(pilot, "Sensors 3")
        await press(pilot, "down")
        application.state.apply("sensors/a", b"1", now())
        assert at_cursor(await shown(pilot, "Sensors 4")) == "c"


async def click(
    pilot: Pilot[None], line: int, effect: Callable[[], object], times: int = 1
) -> None:
    """Click on a line of the table until that shows: on a screen that moves a click may miss."""
    while not effect():
        await pilot.click("#sensor-table", offset=(5, line), times=times)
        with suppress(AssertionError):
            await until(effect, deadline=2.0)  # longer than between the clicks of a double click


@pytest.mark.uncovered
async def test_the_mouse_moves_the_cursor_and_opens(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for name in "abc":
            application.state.apply(f"sensors/{name}", b"1", now())
        await shown(pilot, "Sensors 3")
        await until(lambda: at_cursor(rendered(application)) == "a")  # the rows are there, too
        await click(pilot, 2, lambda: at_cursor(rendered(application)) == "b")
        await pilot.click("#sensor-table", offset=(5, 9))
        await pilot.click("#sensor-table", offset=(5, 0))
        assert at_cursor(rendered(application)) == "b"
        await click(pilot, 3, lambda: "sensors/c" in rendered(application), times=2)
        await shown(pilot, "sensors/c", "escape: back")


@pytest.mark.uncovered
async def test_new_sensors_do_not_pull_a_scrolled_view_back(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for number in range(100):
            application.state.apply(f"sensors/n{number:02}", b"1", now())
        await shown(pilot, "Sensors 100")
        application.screen.query_one(SensorTable).scroll_to(y=50, animate=False, force=True)
        await shown(pilot, "n55")
        application.state.apply("sensors/another", b"1", now())
        await shown(pilot, "Sensors 101", "n55")


@pytest.mark.uncovered
async def test_a_resize_does_not_pull_a_scrolled_view_back(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for number in range(100):
            application.state.apply(f"sensors/n{number:02}", b"1", now())
        await shown(pilot, "Sensors 100")
        table = application.screen.query_one(SensorTable)
        table.scroll_to(y=50, animate=False, force=True)
        await shown(pilot, "n55")
        table.on_resize()  # which also comes when a scrollbar has been laid out
        await pilot._wait_for_screen()
        assert table.scroll_offset.y == 50
        assert "n55" in rendered(application)


@pytest.mark.uncovered
async def test_the_cursor_stays_at_the_top(application: TidegateApp) -> None:
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        for number, name in enumerate("cba", start=1):
            application.state.apply(f"sensors/{name}", b"1", now())
            assert at_cursor(await shown(pilot, f"Sensors {number}")) == name


def at_cursor(text: str) -> str:
    """Return the name in the row with the cursor."""
    return next(line for line in text.splitlines() if "▌" in line).split("┃")[1].split()[1]
