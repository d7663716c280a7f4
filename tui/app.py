"""`tidegate tui`: a gateway on the screen, seen as a plain MQTT client sees it."""

import os
import select
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.segment import Segment
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, ComposeResult
from textual.color import Color
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.theme import Theme
from textual.widget import Widget

from tui.address import DEFAULT_URL, AddressError, parse_address
from tui.cells import WHERE, Cells, Pace
from tui.gateway_client import GatewayClient
from tui.line import Line, safe
from tui.prefs import Preferences, default_file
from tui.record import Recorder, RecordError, Replay
from tui.session import Session
from tui.theme import ASCII, COLOURS, TIDE, TIDE_LIGHT, Palette, ascii_only

TICK = 0.25
"""seconds between two looks at what has come"""
FRAME = 1.0
"""seconds between two frames while nobody presses a key"""
GONE = 129
"""the exit status when the terminal has ended: what a hangup gives"""


class Canvas(Widget, can_focus=True):
    """Shows lines, and has only those written that differ from the lines before."""

    DEFAULT_CSS = "Canvas { width: 100%; height: 100%; background: $background; }"

    def __init__(self) -> None:
        super().__init__()
        self._strips: list[Strip] = []

    def show(self, strips: list[Strip]) -> None:
        """Show these lines."""
        if len(strips) != len(self._strips):
            self._strips = strips
            self.refresh()
            return
        before, self._strips = self._strips, strips
        regions = [
            Region(0, y, new.cell_length, 1)
            for y, (old, new) in enumerate(zip(before, strips, strict=True))
            if old != new
        ]
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """Return a line."""
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.rich_style)


class TidegateApp(App[None]):
    """Gives keys to the session and shows its lines."""

    TITLE = "Tidegate"
    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: $background; }"
    BINDINGS: ClassVar = []  # the session has all keys

    def __init__(
        self,
        client: GatewayClient | Replay,
        preferences: Preferences | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__()
        self.client = client
        self.session = Session(self.client, preferences, self.copy_to_clipboard)
        self.session.recorder = recorder
        self.ascii = ascii_only()
        self._palette = Palette(None)
        self._canvas = Canvas()
        self._cells, self._pace = Cells(), Pace()
        self._urgent = False
        self._drawn_at = 0.0

    def compose(self) -> ComposeResult:
        """Give the one widget."""
        yield self._canvas

    def on_mount(self) -> None:
        """Begin to connect and to draw."""
        self.register_theme(TIDE)
        self.register_theme(TIDE_LIGHT)
        wanted = self.session.preferences.theme
        self.theme = wanted if wanted in self.available_themes else TIDE.name
        self._set_palette()
        self._canvas.focus()
        self.set_interval(TICK, self._tick)
        self._ask_terminal("")
        self.client.start()

    def on_unmount(self) -> None:
        """Leave the gateway."""
        self.client.stop()

    def on_key(self, event: events.Key) -> None:
        """Give a key to the session and show at once what it does."""
        event.stop()
        event.prevent_default()
        self.session.key(event.key, event.character)
        self._urgent = True
        self._draw()

    def on_paste(self, event: events.Paste) -> None:
        """Give a pasted text to the session."""
        self.session.paste(event.text)
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Give a click to the session."""
        self.session.click(event.x, event.y)
        self._draw()

    def on_mouse_scroll_down(self) -> None:
        """Move down."""
        self.session.scroll(3)
        self._draw()

    def on_mouse_scroll_up(self) -> None:
        """Move up."""
        self.session.scroll(-3)
        self._draw()

    def on_resize(self) -> None:
        """Draw again for another size."""
        self._draw()

    def on_cursor_position(self) -> None:
        """Write on: the terminal has shown what was written."""
        self._pace.answered(time.monotonic())
        self._write()
        if self.session.ended:
            self._draw()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Have written what Textual has drawn; of it only the cells that differ."""
        if isinstance(renderable, ChopsUpdate):
            changed = sorted({y for y, _, _ in renderable.spans})
            parts = ((y, renderable.chops[y].values()) for y in changed)
            changes = [(y, Strip.join([each for each in part if each])) for y, part in parts]
            self._cells.want(changes, first=self._urgent)
            self._urgent = False
        elif isinstance(renderable, LayoutUpdate):
            self._cells.forget()
            lines = enumerate(map(Strip.join, renderable.strips), renderable.region.y)
            self._cells.want(lines)
        else:
            super()._display(screen, renderable)
            return
        self._write()
        self.post_display_hook()

    def _write(self) -> None:
        """Write what waits, as much as the terminal takes in a moment."""
        if self._cells.behind and self._pace.ready(time.monotonic()):
            self._ask_terminal(self._cells.write(self.console, self._pace.budget))

    def _ask_terminal(self, written: str) -> None:
        """Write this, and ask the terminal to tell when it is shown."""
        if self._driver is None or self.is_headless or not self._running or self._closed:
            return
        self._begin_update()
        self._driver.write(written)
        self._end_update()
        if self._pace.answers:
            self._driver.write(WHERE)
        self._driver.flush()
        self._pace.wrote(len(written.encode()), time.monotonic())

    def action_help_quit(self) -> None:
        """Quit: Textual asks with ctrl+c."""
        self.session.quit()

    async def action_quit(self) -> None:
        """Quit."""
        self.session.quit()
        self.exit()

    def _tick(self) -> None:
        moment = self.client.clock()
        self.session.tick(moment, time.monotonic)
        ended = self.session.ended
        if self.session.dirty or ended or time.monotonic() - self._drawn_at >= FRAME:
            self._draw()
        self._write()

    def _draw(self) -> None:
        if self.session.ended:
            if self._pace.ready(time.monotonic()):  # else a shell gets the terminal's answer
                self.exit()
            return
        if not self._canvas.is_attached:
            return
        if self.session.theme_wanted:
            self._change_theme()
        if self.session.redraw_wanted:
            self.session.redraw_wanted = False
            self.screen.refresh()
        if self.session.screenshot_wanted:
            self.session.screenshot_wanted = False
            self._save_screenshot()
        self._drawn_at = time.monotonic()
        self.session.now = self.client.clock()
        size = self.size
        lines = self.session.draw(size.width, size.height)
        self._canvas.show([self._strip(each, size.width) for each in lines])

    def _strip(self, shown: Line, cells: int) -> Strip:
        style, signs = self._palette.style, ASCII if self.ascii else {}
        segments = [Segment(safe(text).translate(signs), style(name)) for text, name in shown]
        return Strip(segments).adjust_cell_length(cells, style("text")).simplify()

    def _set_palette(self) -> None:
        """Use the terminal's own 16 colours where it has no more."""
        ansi = not self.is_headless and self.console.color_system == "standard"
        self.ansi_color = ansi
        self._palette = Palette(None if ansi else colours_of(self.current_theme))

    def _change_theme(self) -> None:
        names = sorted(self.available_themes)
        wanted, self.session.theme_wanted = self.session.theme_wanted, ""
        if wanted == "next":
            wanted = names[(names.index(self.theme) + 1) % len(names)]
        if wanted not in names:
            self.session.tell(
                f"there is no theme {wanted[:40]!r}; there are: {', '.join(names)}", good=False
            )
            return
        self.theme = self.session.preferences.theme = wanted
        self.session.preferences.save()
        self._set_palette()
        self.session.tell(f"theme {wanted}")

    def _save_screenshot(self) -> None:
        try:
            path = self.save_screenshot(path=str(Path.home()))
        except OSError as problem:
            self.session.tell(f"no screenshot: {problem.strerror}", good=False)
        else:
            self.session.tell(f"the screen is in {path}")


def colours_of(theme: Theme) -> dict[str, str]:
    """Return a theme's colours; one that goes by its ground is mixed from the others."""
    found = dict(theme.to_color_system().generate())
    if not found.get("text-muted", "auto").startswith("#"):
        ground, text = (Color.parse(found[each]) for each in ("background", "foreground"))
        found["text-muted"] = ground.blend(text, 0.62).hex6
    if not found["background"].startswith("#"):
        found["background"] = "#000000"
    return {name: Color.parse(found[name]).hex6 for name in COLOURS}


class Watch:
    """Ends the program when its terminal has ended, even if a thread waits."""

    def __init__(self, terminal: int) -> None:
        self._poll = select.poll()
        self._poll.register(terminal, 0)  # poll reports an end unasked

    def start(self) -> None:
        """Watch from now on."""
        Thread(target=self._run, name="terminal-watch", daemon=True).start()

    def _run(self) -> None:
        self._poll.poll()
        os._exit(GONE)  # nobody reads what an orderly end would write, and writing may block


def run(
    url: str = DEFAULT_URL,
    username: str | None = None,
    password_file: Path | None = None,
    ca_file: Path | None = None,
    record: Path | None = None,
    replay: Path | None = None,
    *,
    cert: Path | None = None,
    key: Path | None = None,
) -> int:
    """Show the gateway at `url`, or a recording, until the person quits; return the exit status.

    It is 2, with one line on standard error, if the address or a file cannot be used or there is
    no terminal; see `tui.address.parse_address` for the login.
    """
    try:
        client = (
            GatewayClient(parse_address(url, username, password_file, ca_file, cert, key))
            if replay is None
            else Replay(replay)
        )
        recorder = None if record is None else Recorder(record.open("w", encoding="utf-8"))
    except (AddressError, RecordError) as problem:
        return _refuse(str(problem))
    except OSError as problem:
        return _refuse(f"recording {str(record)!r}: {problem.strerror}")
    served = "TEXTUAL_DRIVER" in os.environ  # such as textual-serve's
    if not served and not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on that
        return _refuse("standard input and error must be a terminal")
    application = TidegateApp(client, Preferences(default_file()), recorder)
    if not served:
        Watch(sys.stdin.fileno()).start()
    application.run()
    if recorder is not None:
        recorder.close()
    return application.return_code or 0


def _refuse(problem: str) -> int:
    sys.stderr.write(f"tidegate tui: {problem}\n")
    return 2
