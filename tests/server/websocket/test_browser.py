"""A web page in a real browser, which names its origin by itself."""

import asyncio
import http.server
import json
import queue
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support.places import Place, open_place
from tests.support.processes.certificates import Authority, Pair

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
NO_BROWSER = "no chromium in PATH: apt-get install chromium"

PAGE = """<!doctype html><body><script>
const results = {};
const done = () => Object.keys(results).length == 3
  && fetch('/told?' + encodeURIComponent(JSON.stringify(results)));
function attempt(name, url) {
  const socket = new WebSocket(url, 'mqtt');
  socket.onopen = () => { results[name] = 'open'; done(); };
  socket.onerror = () => { results[name] = results[name] || 'refused'; done(); };
}
attempt('default', 'ws://localhost:DEFAULT/mqtt');
attempt('named', 'ws://localhost:NAMED/mqtt');
window.onmessage = event => { results.framed = event.data; done(); };
const frame = document.createElement('iframe');
frame.sandbox = 'allow-scripts';
frame.srcdoc = `<script>const socket = new WebSocket('ws://localhost:NAMED/mqtt', 'mqtt');
  socket.onopen = () => parent.postMessage('open', '*');
  socket.onerror = () => parent.postMessage('refused', '*');<` + `/script>`;
document.body.append(frame);
</script>"""


class Site(http.server.ThreadingHTTPServer):
    """Serves the page, and takes what it tells."""

    def __init__(self) -> None:
        self.reported: queue.SimpleQueue[dict[str, str]] = queue.SimpleQueue()
        self.page = ""
        super().__init__(("127.0.0.1", 0), Answer)


class Answer(http.server.BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        _, _, reported = self.path.partition("/told?")
        if reported:
            self.server.reported.put(json.loads(unquote(reported)))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.page.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


@pytest.fixture
async def places(
    tmp_path: Path, authority: Authority, server_pair: Pair, site: Site
) -> AsyncIterator[tuple[Place, Place]]:
    """Give a listener as it is by default, and one that names the site."""
    origins = (f"http://localhost:{site.server_port}",)
    opened = [
        await open_place("websocket", tmp_path, authority, server_pair, change=change)
        for change in (
            lambda listener: listener,
            lambda listener: replace(listener, websocket_origins=origins),
        )
    ]
    yield opened[0], opened[1]
    for place in opened:
        await place.close()


@pytest.mark.uncovered
@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
async def test_a_page_of_another_port_connects_only_where_it_is_named(
    tmp_path: Path, places: tuple[Place, Place], site: Site
) -> None:
    assert BROWSER is not None
    ports = [str(place.server.port) for place in places]
    site.page = PAGE.replace("DEFAULT", ports[0]).replace("NAMED", ports[1])
    browser = await asyncio.create_subprocess_exec(
        BROWSER,
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0"),
        f"http://localhost:{site.server_port}/",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        reported = await asyncio.to_thread(site.reported.get, timeout=60)
    finally:
        browser.kill()
        await browser.wait()
    assert reported == {"default": "refused", "named": "open", "framed": "refused"}
    refused = [
        place.server.counters.count("tidegate/connections/origins_refused") for place in places
    ]
    assert refused == [1, 1]
