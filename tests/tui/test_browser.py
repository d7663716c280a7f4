"""The screen in a real browser, by `tidegate tui --serve`."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import SECONDS, listens, until
from tests.tui.emulator import Screen, show, text_of

pytest.importorskip("textual_serve", reason="pip install 'textual-serve>=1.1,<2'")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.uncovered,
    pytest.mark.skipif(BROWSER is None, reason="no chromium in PATH: apt-get install chromium"),
]

SPY = """
window.received = ''; window.fetched = [];
const Socket = window.WebSocket;
window.WebSocket = class extends Socket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', async event => {
      const data = event.data;
      window.received += data instanceof Blob ? await data.text()
        : typeof data == 'string' ? data : new TextDecoder().decode(data);
    });
  }
};
new PerformanceObserver(list => list.getEntries().forEach(each => window.fetched.push(each.name)))
  .observe({type: 'resource', buffered: true});
"""
"""keeps what the terminal in the page is sent, which it draws on a canvas, and what is loaded"""


class Page:
    """A page of a browser, by the protocol of its developer tools."""

    def __init__(self, socket: Connection) -> None:
        self._socket = socket
        self._count = 0
        self.give("Page.enable")
        self.give("Page.addScriptToEvaluateOnNewDocument", source=SPY)

    def give(self, method: str, **parameters: object) -> Any:
        """Give a command; return its result."""
        self._count += 1
        command = {"id": self._count, "method": method, "params": parameters}
        self._socket.send(json.dumps(command))
        while (answer := json.loads(self._socket.recv(SECONDS))).get("id") != self._count:
            continue
        return answer["result"]

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        return self.give("Runtime.evaluate", expression=expression)["result"].get("value")

    def text(self) -> str:
        """Return what the terminal in the page shows, by what it was sent."""
        screen: Screen = {}
        show(self.value("window.received") or "", screen)
        return text_of(screen)

    def shows(self, text: str) -> None:
        """Wait until the terminal in the page shows this text."""
        until(lambda: text in self.text(), text, self.text)

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            text = key if kind == "keyDown" else ""
            self.give("Input.dispatchKeyEvent", type=kind, key=key, text=text)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    assert BROWSER is not None
    profile = tmp_path / "profile"
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
    browser = subprocess.Popen(
        [
            BROWSER,
            *options,
            f"--user-data-dir={profile}",
            "--remote-debugging-port=0",
            "about:blank",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        reported = profile / "DevToolsActivePort"
        until(lambda: reported.exists() and reported.read_text().count("\n"), "the browser listens")
        port = int(reported.read_text().splitlines()[0])
        until(lambda: listens(port), "the browser listens")
        with connect(_first_page(port), max_size=None) as socket:
            yield Page(socket)
    finally:
        browser.kill()
        browser.wait(SECONDS)


def _first_page(port: int) -> str:
    """Return the address of the tools of the page that is open."""

    def pages() -> list[str]:
        with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=SECONDS) as answer:
            found = json.load(answer)
        return [each["webSocketDebuggerUrl"] for each in found if each["type"] == "page"]

    until(pages, "a page is open")
    return pages()[0]


@pytest.fixture
def served(gateway: GatewayProcess, tmp_path: Path) -> Iterator[str]:
    """The address with the token at which the screen of a gateway is served."""
    tidegate, port = str(Path(sys.executable).with_name("tidegate")), free_port()
    url = f"mqtt://127.0.0.1:{gateway.port}"
    command = [tidegate, "tui", url, "--serve", f"--port={port}"]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[1]
        server.terminate()
        server.wait(SECONDS)


def test_the_screen_in_a_browser(served: str, page: Page) -> None:
    until(lambda: listens(int(served.split(":")[2].partition("/")[0])), "the screen is served")
    page.give("Page.navigate", url=served.partition("?")[0] + "?token=wrong")
    until(lambda: "needs the token" in page.value("document.body.innerText"), "a refusal")

    page.give("Page.navigate", url=served)
    page.shows("barn")
    page.shows("plant")
    until(lambda: page.value("document.activeElement.tagName") == "TEXTAREA", "the focus")
    page.press("?")
    page.shows("keys and signs")
    page.press("3")
    page.shows("[3 Clients")
    fetched = page.value("window.fetched.join(' ')").split()
    own = (served.partition("?")[0], "data:", "blob:")
    assert not [each for each in fetched if not each.startswith(own)]
