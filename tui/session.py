"""The whole screen without a terminal: takes keys and what the gateway tells, gives lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty

from tui import figures
from tui.editor import Editor
from tui.gateway_client import GatewayClient
from tui.line import (
    HEAD,
    MUTED,
    TEXT,
    Line,
    Piece,
    box,
    filled,
    fitted,
    line,
    over,
    restyled,
    spread,
    width,
)
from tui.link import Acknowledged, Answered, Link, LinkEvent, Phase, Subscribed
from tui.orders import Order
from tui.prefs import Preferences
from tui.queries import EVENTS, SILENT, STATUS, Queries, Query
from tui.record import Recorder, Replay
from tui.screens import COMMANDS, SCREENS
from tui.series import SPANS, Course
from tui.state import GatewayState
from tui.subject import Subject
from tui.text import lasting, printable, time_of_day, wrapped
from tui.verdict import Finding, clock_ahead, findings, silent_count
from tui.view import Action, View

MOST_WORK = 0.05
"""seconds of a tick in which arrivals are taken; the rest stays in the bounded inbox"""
NOTE = 6.0
"""seconds that a note stays in the footer"""
FROZEN = 3.0
"""seconds without any answer after which the gateway is shown as stalled"""
LEAST = (20, 4)
"""cells and lines below which nothing is drawn but the gateway's state"""
LEAST_WRAPPED, MOST_WRAPPED = 10, 3
"""lines of a screen from which a banner may take several, and how many"""
FLOOD = 1_000.0
"""sampled messages a second at which sampling is thinned out"""
THINNER = 4
"""by what its interval is multiplied then"""
RAREST = 60_000
"""milliseconds beyond which nothing is sampled any more"""


class Question:
    """A question over the screen; the default is no."""

    def __init__(self, words: str, consequence: str, yes: Callable[[], object]) -> None:
        self.words = words
        self.consequence = consequence
        self.yes = yes

    def draw(self, cells: int) -> list[Line]:
        """Return the frame with the question."""
        inner = min(cells - 4, max(60, len(self.words) + 8))
        lines: list[Line] = [[]]
        lines += [line((each, HEAD)) for each in wrapped(self.words, inner - 4)]
        lines += [line((each, TEXT)) for each in wrapped(self.consequence, inner - 4)]
        lines += [
            [],
            line(("y", "key"), (" yes    ", MUTED), ("any other key", "key"), (" no", MUTED)),
        ]
        return box(line(("?", "warn")), lines, inner, len(lines) + 3, style="warn")


class Session:
    """Joins the connection, the state and the screens; `draw` returns what is shown."""

    def __init__(
        self,
        client: GatewayClient | Replay,
        preferences: Preferences | None = None,
        copy: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.client = client
        self.preferences = preferences or Preferences()
        self.copy = copy
        self.recorder: Recorder | None = None
        self.state = GatewayState()
        self.queries = Queries(client.ask)
        self.courses = {step: Course(step, steps) for step, steps, _ in SPANS}
        self.span = 0
        """which of SPANS the plots show"""
        self.back = 0
        """steps that the plots have been moved back in time"""
        self.link = Link(Phase.CONNECTING)
        self.refusals: dict[str, str] = {}
        """topic filters that we may not hear, and why"""
        self.ended = False
        self.theme_wanted = ""
        self.dirty = True
        """whether something changed that is to be drawn at once"""
        self.editor: Editor | None = None
        self.question: Question | None = None
        self.order: Order | None = None
        self._orders: list[tuple[str, str, Order]] = []
        """what is ordered when the order before has had its effect"""
        self.stacks: list[list[View]] = [[screen(self)] for screen in SCREENS]
        self.screen = 0
        self.now = 0.0
        self.screenshot_wanted = False
        self.redraw_wanted = False
        self._check: Callable[[str], str] | None = None
        self._accept: Callable[[str], object] = lambda _: None
        self._note: tuple[str, str, float] = ("", TEXT, 0.0)
        self._last_connected: float | None = None
        self._sampling: tuple[str, int] | None = None
        self._where = ""
        self._sampled: tuple[float, int] = (0.0, 0)
        self.flooded = ""
        """a topic filter of which more comes than can be sampled; empty for none"""
        self._everything = False
        self._tabs: list[tuple[int, int]] = []
        self._body_at = 1
        self._height = 24
        self._seen_at_start: int | None = None
        self._doing: dict[str, str] = {}

    # What the gateway tells

    def tick(self, now: float, clock: Callable[[], float]) -> None:
        """Take what has come, ask what is due; `clock` bounds the work."""
        self.now = now
        if self.link.phase is Phase.CONNECTED:
            self._last_connected = now
        self._receive_events(now)
        self._receive_arrivals(clock)
        if self.link.phase is Phase.CONNECTED:
            self._keep_sampling(now)
            self.queries.want([STATUS, *self.view.queries(), SILENT, EVENTS], now)
        self._follow_order(now)
        self._tell_done()

    def _receive_events(self, now: float) -> None:
        while True:
            try:
                event = self.client.events.get_nowait()
            except Empty:
                return
            if self.recorder is not None:
                self.recorder.event(event, now)
            self.on_event(event, now)

    def on_event(self, event: LinkEvent, now: float) -> None:
        """Take something that the connection tells."""
        match event:
            case Link():
                self._on_link(event, now)
                self.dirty = True
            case Subscribed(topic_filter, refusal):
                self.refusals.pop(topic_filter, None)
                if refusal:
                    self.refusals[topic_filter] = refusal
                    self.dirty = True
            case Acknowledged(key, refusal):
                self._on_acknowledged(key, refusal)
            case Answered(key, payload):
                self.queries.answered(key, payload, now)
                self._on_answer(key, now)

    def _on_link(self, link: Link, now: float) -> None:
        before, self.link = self.link, link
        if link.phase is Phase.CONNECTED:
            self.state.begin(now)
            self.refusals.clear()
            self._sampling, self._everything, self.flooded = None, False, ""
            self.client.subscribe_to_answers()
            self.client.subscribe([figures.ROOT + each for each in figures.WATCHED])
            self.state.note("info", f"connected to {self.client}", now)
        else:
            self.queries.lost()
            self._orders.clear()
            if self.order is not None:
                self.order.lost()
            if link.reason and link.reason != before.reason:
                self.state.note("warning", f"no connection: {link.reason}", now)
        if link.phase is Phase.REFUSED:
            self.ask_password()

    def _on_acknowledged(self, key: str, refusal: str) -> None:
        self.queries.acknowledged(key, refusal)
        if key.startswith("order ") and self.order is not None and refusal:
            self.order.refused(refusal)
        elif key.startswith("publish "):
            self.tell(refusal or f"published on {key.removeprefix('publish ')}", not refusal)

    def _on_answer(self, key: str, now: float) -> None:
        for course in self.courses.values():
            wanted = course.query()
            if wanted.key == key:
                answer = self.queries.get(wanted)
                course.apply(answer.document, answer.error)
        if key == EVENTS.key and self._seen_at_start is None:
            newest = self.queries.get(EVENTS).number("last")
            if newest is not None:
                known = self.preferences.seen.get(self.gateway(), int(newest))
                self._seen_at_start = min(known, int(newest))
        if key.startswith("topics "):
            answer = self.queries.get_by_key(key)
            sent = answer.number("time")
            if not answer.error and sent is not None:
                self.state.topics.tell(answer.rows(), sent / 1_000 - now, now)
                if key == SILENT.key:
                    complete = answer.number("next") is None
                    self.state.topics.silent(answer.rows(), now, complete=complete)
                if key != SILENT.key:  # its rows are kept as topics, once
                    answer.document = {**answer.document, "rows": []}

    def _receive_arrivals(self, clock: Callable[[], float]) -> None:
        end = clock() + MOST_WORK
        while clock() < end and (arrival := self.client.inbox.pop()) is not None:
            if self.recorder is not None:
                self.recorder.message(arrival)
            self.state.apply(
                arrival.topic,
                arrival.payload,
                arrival.at,
                retained=arrival.retained,
                where=arrival.where,
            )

    def _keep_sampling(self, now: float) -> None:
        """Subscribe to what the view samples, less often if more comes than a screen needs."""
        wanted = self.view.sampling()
        if self._where != self.view.where:
            self._where, self._sampling, self.flooded = self.view.where, None, ""
        since, count = self._sampled
        if wanted is not None and self._sampling is not None and wanted[0] == self._sampling[0]:
            wanted = wanted[0], max(wanted[1], self._sampling[1])
            if now - since >= 2.0:
                if (self.state.sampled - count) / (now - since) > FLOOD:
                    wanted = wanted[0], wanted[1] * THINNER
                self._sampled = now, self.state.sampled
        if wanted is not None and wanted[1] > RAREST:
            self.flooded = wanted[0]  # such as by a gateway that does not know `$every`
        if wanted is not None and wanted[0] == self.flooded:
            wanted = None
        if wanted != self._sampling:
            if self._sampling is not None and (wanted is None or wanted[0] != self._sampling[0]):
                self.client.unsubscribe([self._sampling[0]])
            if wanted is not None:
                self.client.subscribe([wanted[0]], wanted[1], self._where)
            self._sampling, self._sampled = wanted, (now, self.state.sampled)
        if self.view.every_figure() != self._everything:
            self._everything = not self._everything
            change = self.client.subscribe if self._everything else self.client.unsubscribe
            change([figures.ROOT + figures.EVERYTHING])

    @property
    def sampling_every(self) -> int:
        """The milliseconds between two sampled messages of a topic."""
        return 0 if self._sampling is None else self._sampling[1]

    def _follow_order(self, now: float) -> None:
        order = self.order
        if order is None:
            return
        order.check(now)
        if order.outcome:
            self.order = None
            self.tell(order.outcome, order.done)
            self._next_order()

    # What is true now

    def gateway(self) -> str:
        """Return the gateway's name, or its address while that is not known."""
        event = self.queries.get(STATUS).text("gateway", 48)
        return event or self.state.figures.word(figures.GATEWAY_ID) or str(self.client)

    def findings(self) -> list[Finding]:
        """Return what needs a person."""
        status, events, silent = (self.queries.get(each) for each in (STATUS, EVENTS, SILENT))
        return findings(self.state, status, events, silent, self.now)

    @property
    def there(self) -> float:
        """The time by the gateway's clock, which may differ from ours."""
        return self.now + clock_ahead(self.queries.get(STATUS))

    def silent(self) -> int:
        """Return how many topics are silent."""
        return silent_count(self.state, self.queries.get(SILENT))

    def unseen(self) -> int:
        """Return how many events arrived since the user last saw them."""
        seen = self._seen_at_start
        if seen is None:
            return 0
        return sum(
            (each if isinstance(each := row.get("id"), int) else 0) > seen
            for row in self.queries.get(EVENTS).rows()
        )

    def seen_until(self) -> int:
        """Return the last event that the person has seen."""
        return self._seen_at_start or 0

    def mark_seen(self) -> None:
        """Take it that all events were seen."""
        newest = self.queries.get(EVENTS).number("last")
        if newest is not None:
            self._seen_at_start = int(newest)
            self.preferences.seen[self.gateway()] = int(newest)
            self.preferences.save()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self.link.phase is Phase.CONNECTED

    def frozen(self) -> float | None:
        """Return for how long the gateway has not answered, if that is too long."""
        if self.link.phase is not Phase.CONNECTED:
            return None
        silence = self.now - max(self.client.received_at, self.state.since)
        late = self.state.rates.stale(self.now, self.state.since)
        overdue = late is not None and self._may_hear_figures()
        if silence >= FROZEN and (overdue or self.queries.open_since(self.now) >= FROZEN - 0.5):
            return silence
        return None

    def old(self) -> str:
        """Return why the figures are old, and how old; empty while they are not."""
        if self.link.phase is not Phase.CONNECTED:
            return "no connection"
        if (silence := self.frozen()) is not None:
            return f"no answer for {silence:.0f}s"
        if self._may_hear_figures():
            late = self.state.rates.stale(self.now, self.state.since)
            if late is not None:
                return f"no figures for {late:.0f}s"
        return ""

    def _may_hear_figures(self) -> bool:
        return f"{figures.ROOT}{figures.UPTIME}" not in self.refusals

    def banner(self) -> Line | None:
        """Return the line that stays while something is wrong between us and the gateway."""
        reason, phase = self.link.reason, self.link.phase
        then = ""
        if self._last_connected is not None:
            then = f" · what is shown is of {time_of_day(self._last_connected)}"
        if phase is Phase.REFUSED:
            return line(
                (f" ✕ LOGIN REFUSED: {reason} · P: give a password", "alert"), (then, "alert")
            )
        if phase is Phase.WAITING:
            left = max(0, round(self.link.retry_at - self.now))
            when = f" · attempt {self.link.attempt} in {left}s · r: now"
            return line((f" ✕ NO CONNECTION: {reason}{when}{then}", "alert"))
        if phase is Phase.CONNECTING:
            why = f" after: {reason}" if reason else ""
            return line((f" ◐ connecting to {self.client}{why}{then}", "caution"))
        if (silence := self.frozen()) is not None:
            received = time_of_day(self.client.received_at)
            words = f" ◌ NO ANSWER for {silence:.0f}s: the gateway or the network stands still"
            return line((f"{words} · what is shown is of {received}", "alert"))
        if words := self._refused_words():
            return line((f" ! {words}", "caution"))
        if old := self.old():
            return line((f" ! {old}", "caution"))
        return None

    def _refused_words(self) -> str:
        missing = []
        if not self._may_hear_figures():
            missing.append("the figures (read $SYS/#)")
        answers = any(each.startswith("$CONTROL/answers/") for each in self.refusals)
        if self.queries.refused or answers:
            missing.append("the gateway's answers ($CONTROL: an operator's right)")
        others = [each for each in self.refusals if not each.startswith(("$SYS/", "$CONTROL/"))]
        missing += [f"messages on {each}" for each in others[:2]]
        return "you may not read " + ", nor ".join(missing) if missing else ""

    # The screens

    @property
    def stack(self) -> list[View]:
        """The screen in view and the details on top of it."""
        return self.stacks[self.screen]

    @property
    def view(self) -> View:
        """What is in view."""
        return self.stack[-1]

    def go(self, title: str, row: str = "") -> None:
        """Show a screen, and put its cursor on a row."""
        for index, screen in enumerate(SCREENS):
            if screen.title.casefold() == title.casefold():
                self.screen = index
                del self.stack[1:]
                table = self.view.table
                if row and table is not None:
                    table.point_at(row)
        self.dirty = True

    def open(self, view: View) -> None:
        """Show a detail on top of what is in view."""
        self.stack.append(view)
        self.dirty = True

    def go_back(self) -> None:
        """Go back by one."""
        if len(self.stack) > 1:
            self.stack.pop().closed()
        elif self.view.zoomed:
            self.view.zoomed = False
        elif (table := self.view.focused) is not None and (table.filter or table.marked):
            table.filter = ""
            table.marked.clear()
        elif table is not None and table is self.view.below:
            self.view.focus(self.view.table)
        elif self.screen:
            self.go("Now")

    def tell(self, words: str, good: bool = True) -> None:
        """Say something in the footer for some seconds, and in the log."""
        self._note = printable(words, 300), "good" if good else "bad", self.now
        self.state.note("info" if good else "warning", words, self.now)
        self.dirty = True

    def ask(self, words: str, consequence: str, yes: Callable[[], object]) -> None:
        """Ask before something is done; the default is no."""
        if self.link.phase is not Phase.CONNECTED:
            self.tell("there is no connection: nothing was sent", good=False)
            return
        self.question = Question(words, consequence, yes)

    def do(self, wanted: Query, words: str) -> None:
        """Send a query that changes something, and tell what comes of it."""
        self._doing[wanted.key] = words
        self.queries.ask(wanted, self.now)

    def _tell_done(self) -> None:
        for key, words in list(self._doing.items()):
            answer = self.queries.get_by_key(key)
            if answer.sent_at is None:
                del self._doing[key]
                count = answer.number("count")
                done = words if count is None else f"{count:,.0f} {words}"
                self.tell(answer.error or done, good=not answer.error)

    def give_order(self, part: str, word: str, order: Order) -> None:
        """Send a command below `$CONTROL/tidegate/` and follow what comes of it."""
        if self.link.phase is not Phase.CONNECTED or self.frozen() is not None:
            self.tell(f"no connection: no order to {order.what} was sent", good=False)
        else:
            self._orders.append((part, word, order))
            self._next_order()

    def _next_order(self) -> None:
        if self.order is None and self._orders:
            part, word, self.order = self._orders.pop(0)
            self.order.begin(self.now)
            self.client.order(f"order {part}", part, word)
            self.tell(f"ordered {self.order.subject} to {self.order.what}")

    def prompt(
        self,
        prompt: str,
        accept: Callable[[str], object],
        text: str = "",
        choices: Sequence[str] = (),
        check: Callable[[str], str] | None = None,
    ) -> Editor:
        """Have the person type a line; what `check` says of it stands beside it."""
        self.editor = Editor(prompt, text, choices)
        self._check = check
        self._accept = accept
        return self.editor

    def ask_password(self) -> None:
        """Have the person type the password."""
        editor = self.prompt("password: ", self._on_password)
        editor.hidden = True
        editor.note = "the gateway refused the login; escape: leave it"

    def _on_password(self, password: str) -> None:
        if password:
            self.client.retry_now(password)

    # Keys

    def actions(self) -> list[Action]:
        """Return what the keys do now, those of the view first."""
        found = self.actions_of(self.view)
        if self.link.phase is Phase.WAITING:
            found.insert(0, Action("r", "retry now", self.client.retry_now))
        if self.link.phase is Phase.REFUSED:
            found.insert(0, Action("P", "password", self.ask_password))
        return found

    def actions_of(self, view: View) -> list[Action]:
        """Return what the keys do while a view is in view, and only there."""
        found = list(view.actions())
        table, subject = view.focused, view.subject()
        if subject is not None:
            quiet = isinstance(subject, str)
            found.insert(1, Action("w", "why", lambda: self.explain(subject), quiet=quiet))
        if table is not None:
            found.append(Action("slash", "filter", self.filter, "/"))
        if table is not None and table.can_sort:
            found.append(Action("s", "sort", table.next_sort))
            found.append(Action("S", "reverse order", table.turn_sort, quiet=True))
        if view.marks and table is not None and table is view.table:
            found.append(Action("space", "mark for an action on all", table.mark, quiet=True))
        if view.below is not None and not view.zoomed:
            found.append(Action("tab", "other pane", view.next_pane))
            found.append(Action("shift+tab", "other pane", view.next_pane, quiet=True))
        if view.panes:
            label = "what is below" if view.zoomed else "table only"
            found.append(Action("z", label, view.zoom, quiet=True))
        return found

    def common(self) -> list[Action]:
        """Return what the keys do everywhere."""
        found = [
            Action("question_mark", "help", self.help, "?"),
            Action("colon", "command", self.command, ":"),
            Action("q", "quit", self.quit),
            Action("escape", "back", self.go_back, "esc"),
            Action("y", "copy", self._copy),
            Action("T", "next theme", self._next_theme),
            Action("ctrl+p", "palette", self.command),
            Action("ctrl+s", "screenshot", self._screenshot),
            Action("ctrl+l", "redraw", self._redraw),
            Action("ctrl+c", "quit", self.quit),
        ]
        for index, screen in enumerate(SCREENS):
            found.append(
                Action(str(index + 1), screen.title, lambda title=screen.title: self.go(title))  # type: ignore[misc]
            )
        return found

    def key(self, key: str, character: str | None = None) -> None:
        """Take a key."""
        self.dirty = True
        if self.question is not None:
            question, self.question = self.question, None
            if character in ("y", "Y"):
                question.yes()
            return
        if self.editor is not None:
            self._edit(self.editor, key, character)
            return
        if self._move(key):
            return
        for action in (*self.actions(), *self.common()):
            if action.key == key or (character and action.key == character):
                action.run()
                return

    def paste(self, text: str) -> None:
        """Take a pasted text."""
        if self.editor is not None:
            self.editor.paste(text)
            self.dirty = True

    def click(self, x: int, y: int) -> None:
        """Take a click."""
        self.dirty = True
        if y == 0:
            for index, (begin, end) in enumerate(self._tabs):
                if begin <= x < end:
                    self.go(SCREENS[index].title)
        elif self.question is None and y < self._height - 1:
            self.view.click(y - self._body_at)

    def scroll(self, by: int) -> None:
        """Take a turn of the mouse's wheel."""
        if self.view.focused is not None:
            self.view.focused.move(by)
            self.dirty = True

    def _edit(self, editor: Editor, key: str, character: str | None) -> None:
        action = editor.press(key, character)
        if action == "done":
            self.editor = None
            self._accept(editor.text)
        elif action == "cancel":
            self.editor = None
            if editor.prompt == "/" and self.view.focused is not None:
                self.view.focused.filter = ""
        elif action == "changed" and self._check is not None:
            editor.note = self._check(editor.text)
        elif action == "changed" and editor.prompt == "/" and self.view.focused is not None:
            self.view.focused.filter = editor.text

    def _move(self, key: str) -> bool:
        table = self.view.focused
        if table is None:
            return False
        match key:
            case "down" | "j":
                table.move(1)
            case "up" | "k":
                table.move(-1)
            case "pagedown" | "ctrl+d" | "ctrl+f":
                table.page(1)
            case "pageup" | "ctrl+u" | "ctrl+b":
                table.page(-1)
            case "home" | "g":
                table.move(-len(table.rows))
            case "end" | "G" | "upper_g":
                table.move(len(table.rows))
            case _:
                return False
        return True

    def filter(self) -> None:
        """Have the person type a filter of the table in view."""
        table = self.view.focused
        if table is not None:
            self.prompt("/", lambda text: setattr(table, "filter", text), table.filter)

    def command(self) -> None:
        """Have the person type a command."""
        choices = [f"{words}  {about}" for words, about in self.commands()]
        self.prompt(":", self.run_command, "", choices)

    def commands(self) -> list[tuple[str, str]]:
        """Return every command with what it does: screens, actions, those with an argument."""
        found = [(screen.title.lower(), screen.about) for screen in SCREENS]
        found += [(each.label, f"key {each.shown or each.key}") for each in self.actions()]
        found += [(each.label, f"key {each.shown or each.key}") for each in self.common()[:9]]
        found += [(name, about) for name, (about, _) in COMMANDS.items()]
        return list(dict(found).items())

    def run_command(self, text: str) -> None:
        """Carry out a command that was typed."""
        words = text.strip()
        name, _, argument = words.partition(" ")
        for screen in SCREENS:
            if words.casefold() and screen.title.casefold() == words.casefold():
                self.go(screen.title)
                return
        for action in (*self.actions(), *self.common()):
            if action.label.casefold() == words.casefold():
                action.run()
                return
        if name in COMMANDS:
            COMMANDS[name][1](self, argument.strip())
        elif name == "q":
            self.quit()
        elif words:
            self.tell(
                f"no command {printable(words, 40)!r}: tab completes, ? has all keys", good=False
            )

    def help(self) -> None:
        """Show the keys."""
        from tui.screens.help import Help

        if not isinstance(self.view, Help):
            self.open(Help(self))
        else:
            self.go_back()

    def explain(self, subject: Subject | str) -> None:
        """Show where messages went and why, or tell why that cannot be shown."""
        from tui.screens.why import why_of

        if isinstance(subject, str):
            self._note = subject, "warn", self.now
        else:
            self.open(why_of(self, subject))

    def quit(self) -> None:
        """End, and keep what was seen."""
        newest = self.queries.get(EVENTS).number("last")
        if newest is not None:
            self.preferences.seen[self.gateway()] = int(newest)
        self.preferences.save()
        self.ended = True

    def _next_theme(self) -> None:
        self.theme_wanted = "next"

    def _redraw(self) -> None:
        self.redraw_wanted = True

    def _screenshot(self) -> None:
        self.screenshot_wanted = True

    def _copy(self) -> None:
        words = self.view.copied()
        self.copy(words)
        self.tell(f"copied {printable(words, 60)}")

    # The lines

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return exactly so many lines of so many cells."""
        self.dirty = False
        self._height = height
        if cells < LEAST[0] or height < LEAST[1]:
            return filled([self._top(cells)], cells, height)
        lines = [self._top(cells)]
        lines += self._banner(cells, height)
        self._body_at = len(lines)
        typed = self._typed(cells, height)
        free = height - len(lines) - max(1, len(typed))
        body = filled(self.view.draw(cells, free), cells, free)
        below = typed or [self._footer(cells)]
        if self.link.phase is not Phase.CONNECTED or self.frozen() is not None:
            body = [restyled(each, MUTED) for each in body]
        if self.question is not None:
            body = over(body, self.question.draw(cells), cells)
        return filled([*lines, *body, *below], cells, height)

    def _banner(self, cells: int, height: int) -> list[Line]:
        """Return the banner in as many lines as it needs, if there is one."""
        banner = self.banner()
        if banner is None:
            return []
        style, words = banner[0][1], "".join(text for text, _ in banner).strip()
        most = 1 if height < LEAST_WRAPPED else MOST_WRAPPED
        found = wrapped(words, cells - 2)
        if len(found) > most:
            found = [*found[: most - 1], " ".join(found[most - 1 :])]
        return [restyled(fitted(line(f" {each}"), cells), style) for each in found]

    def _top(self, cells: int) -> Line:
        """Return the first line: whose figures these are, how fresh, and the screens."""
        if self.link.phase is Phase.CONNECTED and not self.old():
            sign: Piece = ("●", "good")
        elif self.link.phase is Phase.CONNECTED:
            sign = ("◌", "bad")
        else:
            sign = ("✕", "bad")
        state = self.old()
        if not state:
            up = self.state.up(self.queries.get(STATUS).document)
            state = "up " + lasting(up) if up is not None else "connected"
        name = printable(self.gateway(), max(8, cells // 5))
        begin = line((f" {name} ", HEAD), sign, (f" {state} ", MUTED))
        tabs = self._tab_names(cells - width(begin) - 1)
        self._tabs, at = [], width(begin)
        shown: Line = []
        for index, text in enumerate(tabs):
            self._tabs.append((at, at + len(text)))
            at += len(text)
            shown.append((text, "tab_on" if index == self.screen else "tab"))
        end = line((f"{self.client} ", MUTED)) if cells >= 110 else []
        return spread([*begin, *shown], end, cells)

    def _tab_names(self, free: int) -> list[str]:
        badges = {"Events": self.unseen(), "Now": len(self.findings())}
        long = []
        for index, screen in enumerate(SCREENS):
            badge = badges.get(screen.title, 0)
            text = f"{index + 1} {screen.title}" + (f" {badge}" if badge else "")
            long.append(f"[{text}]" if index == self.screen else f" {text} ")
        if sum(map(len, long)) <= free:
            return long
        tight = [each if each.startswith("[") else each[:-1] for each in long]
        if sum(map(len, tight)) <= free:
            return tight
        return [
            each if index == self.screen else f" {index + 1}" for index, each in enumerate(long)
        ]

    def _typed(self, cells: int, height: int) -> list[Line]:
        """Return what is typed and what it may become, if anything is."""
        editor = self.editor
        if editor is None:
            return []
        text = "•" * len(editor.text) if editor.hidden else editor.text
        before, at, after = (
            text[: editor.at],
            text[editor.at : editor.at + 1],
            text[editor.at + 1 :],
        )
        typed = line((editor.prompt, "key"), before, (at or " ", "caret"), after)
        if editor.note:
            typed += line(("   " + editor.note, MUTED))
        shown = editor.fitting()[: max(0, min(8, height - 8))] if editor.choices else []
        found = []
        for number, each in enumerate(shown):
            name, _, about = each.partition("  ")
            style = "accent" if number == 0 else TEXT
            found.append(fitted(line((f" {name:<22} ", style), (about, MUTED)), cells))
        return [*found, fitted(typed, cells)]

    def _footer(self, cells: int) -> Line:
        words, style, at = self._note
        if words and self.now - at < NOTE:
            return fitted(line((f" {words}", style)), cells)
        shown = line((" ?", "key"), (" help", MUTED))
        more = [*self.actions(), *self.common()[1:3]]
        if len(self.stack) > 1:
            more.insert(0, self.common()[3])
        for action in (each for each in more if not each.quiet):
            key = action.shown or action.key
            piece = line((f"  {key}", "key"), (f" {action.words}", MUTED))
            if width(shown) + width(piece) <= cells:
                shown += piece
        return fitted(shown, cells)
