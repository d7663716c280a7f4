"""What the dashboard shows, and keys that are pressed in it."""

import asyncio
import time
from collections.abc import Callable

from textual import events
from textual.app import App
from textual.pilot import Pilot

from tests.support.waiting import SECONDS

CHARACTERS = {"space": " ", "colon": ":", "slash": "/", "question_mark": "?"}


def rendered(app: App[None]) -> str:
    """Return the text on the screen, line by line, as a terminal would show it."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def until(
    condition: Callable[[], object], expected: Callable[[], str] = str, deadline: float = SECONDS
) -> None:
    """Return when the condition holds; fail at the deadline with what is `expected`."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"not in time: {expected()}"
        await asyncio.sleep(0.02)


async def shown(pilot: Pilot[None], *texts: str) -> str:
    """Return the screen's text once all of these are in it; fail at the deadline."""
    app = pilot.app
    await until(
        lambda: all(text in rendered(app) for text in texts), lambda: f"{texts}\n{rendered(app)}"
    )
    return rendered(app)


async def gone(pilot: Pilot[None], text: str) -> str:
    """Return the screen's text once this is no longer in it; fail at the deadline."""
    app = pilot.app
    await until(lambda: text not in rendered(app), lambda: f"{text} in\n{rendered(app)}")
    return rendered(app)


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each after all widgets have seen the one before.

    Unlike Pilot.press this does not wait for an idle processor: a live dashboard has none.
    """
    for key in keys:
        character = CHARACTERS.get(key, key if len(key) == 1 else None)
        pilot.app.post_message(events.Key(key, character))
        await pilot._wait_for_screen()


async def connected(pilot: Pilot[None]) -> None:
    """Return when figures come: everything has been asked for."""
    await shown(pilot, "● up")
