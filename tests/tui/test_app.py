"""The application with a real gateway: what it asks is answered, what it orders is done."""

import signal
from pathlib import Path

import pytest
from paho.mqtt.publish import single

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.screen import connected, gone, press, rendered, shown, until
from tui.address import Address
from tui.app import Canvas, TidegateApp
from tui.gateway_client import GatewayClient
from tui.prefs import Preferences
from tui.record import Recorder, Replay
from tui.theme import TIDE_LIGHT

pytestmark = pytest.mark.uncovered


async def test_the_screens_of_a_real_gateway(
    application: TidegateApp, gateway: GatewayProcess
) -> None:
    for value in (20, 24, 22):
        single("sensors/n1/t", f'{{"value":{value},"unit":"°C"}}', qos=1, port=gateway.port)
    async with application.run_test(size=(140, 44)) as pilot:
        await shown(pilot, "barn ● up", "● cloud", "✕ plant", "1 thing needs you", "n1/t", "22 °C")
        await shown(pilot, "in, messages/s", "waiting for the fleet", "outage")
        await press(pilot, "2")
        await shown(pilot, "[2 Topics]", "▾ sensors", "22 °C")
        await press(pilot, "3")
        await shown(pilot, "1 connected", "● you")
        await press(pilot, "4")
        await shown(pilot, "cloud", "jobs", "payload.value > 20", "Connection refused")
        await press(pilot, "5")
        await shown(pilot, "no bridges are configured")
        await press(pilot, "6")
        await shown(pilot, "uplink plant", "disconnected", "connected to mqtt://127.0.0.1")


async def test_w_explains_rows_of_a_real_gateway(
    application: TidegateApp, gateway: GatewayProcess
) -> None:
    for value in (20, 24):
        single("sensors/n1/t", f'{{"value":{value}}}', qos=1, port=gateway.port)
    async with application.run_test(size=(80, 24)) as pilot:
        await connected(pilot)
        await press(pilot, "3")
        await shown(pilot, "● you", "w why")
        await press(pilot, "w")
        await shown(pilot, "connected since", "no refusal for want of a right")
        await press(pilot, "4")
        await shown(pilot, "▌ cloud")
        await press(pilot, "j", "w")
        await shown(pilot, "plant: why it waits", "the link is down", "Connection refused")
        await press(pilot, "escape", "k")
        await shown(pilot, "▌ cloud", "payload.value > 20")
        await press(pilot, "tab", "w")
        await shown(pilot, "payload.value > 20", "2 messages reached it", "1 of these")


async def test_an_uplink_is_paused_and_resumed(application: TidegateApp) -> None:
    async with application.run_test(size=(120, 36)) as pilot:
        await connected(pilot)
        await press(pilot, "4")
        await shown(pilot, "cloud")
        await press(pilot, "j")
        await shown(pilot, "pause plant…")
        await press(pilot, "p")
        await shown(pilot, "Pause uplink plant?")
        await press(pilot, "y")
        await shown(pilot, "uplink plant is paused", "‖ paused")
        await shown(pilot, "resume plant…")
        await press(pilot, "p", "y")
        await shown(pilot, "✕ disconnected")


async def test_a_client_is_disconnected(application: TidegateApp, gateway: GatewayProcess) -> None:
    other = GatewayClient(Address("127.0.0.1", gateway.port))
    other.client_id = "aaa"
    other._connection = other._new_connection()
    other.start()
    async with application.run_test(size=(120, 36)) as pilot:
        await connected(pilot)
        await press(pilot, "3")
        await shown(pilot, "▌ aaa")
        await press(pilot, "K", "y")
        await shown(pilot, "disconnected aaa")
    other.stop()


async def test_a_rule_is_tried_on_live_messages(
    application: TidegateApp, gateway: GatewayProcess
) -> None:
    async with application.run_test(size=(120, 36)) as pilot:
        await connected(pilot)
        await press(pilot, "4")
        await shown(pilot, "▌ cloud", "e edit a rule")
        await press(pilot, "e", "e", "ctrl+u", *"payload.value>60", "enter")
        await shown(pilot, "running for", "tidegate rule apply 0@", "--where 'payload.value>60'")
        single("sensors/n1/t", '{"value":30}', qos=1, port=gateway.port)
        await shown(pilot, "seen          1 messages", "- now only    sensors/n1/t")
        await press(pilot, "E")
        await shown(pilot, "the trial has ended", "over after")


async def test_a_gateway_that_stands_still_and_goes_on(
    application: TidegateApp, gateway: GatewayProcess
) -> None:
    assert gateway.process is not None
    async with application.run_test(size=(120, 36)) as pilot:
        await connected(pilot)
        gateway.process.send_signal(signal.SIGSTOP)
        text = await shown(pilot, "NO ANSWER for")
        assert "●" not in text.splitlines()[0]
        gateway.process.send_signal(signal.SIGCONT)
        await gone(pilot, "NO ANSWER")
        await shown(pilot, "● up")


async def test_the_gateway_goes_away_and_comes_back(
    application: TidegateApp, gateway: GatewayProcess
) -> None:
    async with application.run_test(size=(120, 36)) as pilot:
        await connected(pilot)
        gateway.kill()
        await shown(pilot, "✕ NO CONNECTION", "r: now", "what is shown is of")
        gateway.start()
        await press(pilot, "r")
        await gone(pilot, "NO CONNECTION")
        await connected(pilot)


async def test_a_recording_shows_the_same(gateway: GatewayProcess, tmp_path: Path) -> None:
    file = tmp_path / "session"
    single("sensors/n1/t", '{"value":21}', qos=1, port=gateway.port)
    client = GatewayClient(Address("127.0.0.1", gateway.port))
    with file.open("w") as opened:
        first = TidegateApp(client, recorder=Recorder(opened))
        async with first.run_test(size=(120, 36)) as pilot:
            # All that is looked for below must have come: each is of another answer.
            await shown(pilot, "barn ● up", "● cloud", "n1/t", "uplink plant")
    gateway.kill()
    replay = Replay(file)
    replay.elapsed = 3_600.0
    async with TidegateApp(replay).run_test(size=(120, 36)) as pilot:
        await shown(pilot, "barn ● up", "● cloud", "n1/t", "uplink plant", "recording session")
        await press(pilot, "4", "p", "y")
        await shown(pilot, "this is a recording")


async def test_themes_are_kept(application: TidegateApp, tmp_path: Path) -> None:
    application.session.preferences = Preferences(tmp_path / "tui.json")
    async with application.run_test(size=(100, 30)) as pilot:
        await connected(pilot)
        await press(pilot, "colon", *"theme", "space", *"tide-light", "enter")
        await until(lambda: application.theme == TIDE_LIGHT.name)
        await press(pilot, "colon", *"theme", "space", *"nothing", "enter")
        await shown(pilot, "there is no theme 'nothing'")
        await press(pilot, "T")
        await until(lambda: application.theme != TIDE_LIGHT.name)
        await press(pilot, "q")
    assert Preferences(tmp_path / "tui.json").theme == application.theme


async def test_without_colours(gateway: GatewayProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    application = TidegateApp(GatewayClient(Address("127.0.0.1", gateway.port)))
    async with application.run_test(size=(100, 30)) as pilot:
        await shown(pilot, "● cloud", "✕ plant")
        colours = {
            segment.style.color.triplet
            for strip in application.screen._compositor.render_strips()
            for segment in strip.apply_filter(
                application._filters[0], application.screen.background_colors[1]
            )
            if segment.style is not None and segment.style.color is not None
        }
    assert all(triplet is None or len(set(triplet)) == 1 for triplet in colours)


async def test_ascii_alone(application: TidegateApp) -> None:
    application.ascii = True
    async with application.run_test(size=(120, 36)) as pilot:
        text = await shown(pilot, "* cloud", "x plant", "in, messages/s")
    assert text.isascii()


async def test_the_mouse_and_sizes(application: TidegateApp) -> None:
    async with application.run_test(size=(120, 36)) as pilot:
        await connected(pilot)
        first = rendered(application).splitlines()[0]
        await pilot.click(Canvas, offset=(first.index("3 Clients") + 2, 0))
        await shown(pilot, "[3 Clients]", "● you")
        for size in ((1, 1), (40, 12), (80, 24), (200, 60)):
            await pilot.resize_terminal(*size)
            lines = size[1]
            await until(lambda: len(rendered(application).splitlines()) == lines)  # noqa: B023
