"""The screens in the order of their digits, and the commands that take an argument."""

from collections.abc import Callable
from typing import Any

from tui.screens.clients import Clients
from tui.screens.events import Events
from tui.screens.figures import show_figures
from tui.screens.nodes import Nodes
from tui.screens.now import Now
from tui.screens.queues import Queues
from tui.screens.topics import TopicsScreen, open_topic
from tui.view import View

SCREENS: tuple[type[View], ...] = (Now, TopicsScreen, Clients, Queues, Nodes, Events)
"""a screen is a module here and its entry in this list"""


def _theme(session: Any, name: str) -> None:
    session.theme_wanted = name or "next"


COMMANDS: dict[str, tuple[str, Callable[[Any, str], object]]] = {
    "topic": ("show one topic: topic sensors/boiler/temperature", open_topic),
    "figures": ("every figure that the gateway tells of itself", show_figures),
    "theme": ("change the colours: theme tide-light", _theme),
}
