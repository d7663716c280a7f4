import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.waiting import SECONDS, listens, until

pytest.importorskip("textual_serve", reason="pip install 'textual-serve>=1.1,<2'")


def status(url: str, **headers: str) -> int:
    """Return the status of a GET."""
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def test_a_browser_needs_the_token_and_no_other_page_gets_in() -> None:
    port = free_port()
    tidegate = str(Path(sys.executable).with_name("tidegate"))
    command = [tidegate, "tui", "--serve", f"--port={port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[1]
            assert address.startswith(f"http://127.0.0.1:{port}/?token=")
            until(lambda: listens(port), "the server listens")
            assert status(address) == 200
            plain = address.partition("?")[0]
            assert status(plain) == 403
            assert status(plain + "?token=x") == 403
            assert status(plain + "ws") == 403
            assert status(address, Origin="http://elsewhere") == 403
            assert status(address, Host="elsewhere") == 403
            cookie = address.partition("token=")[2]
            assert status(plain, Cookie=f"tidegate_tui={cookie}") == 200
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.2", port))
        finally:
            server.terminate()
            server.wait(SECONDS)


def test_behind_a_proxy_the_page_has_the_addresses_of_the_browser() -> None:
    port = free_port()
    tidegate = str(Path(sys.executable).with_name("tidegate"))
    command = [tidegate, "tui", "--serve", f"--port={port}", "--behind", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith(f"port {port} is open to 127.0.0.1 only")
            until(lambda: listens(port), "the server listens")
            own = f"http://127.0.0.1:{port}/"
            headers = {
                "X-Forwarded-Proto": "https",
                "X-Forwarded-Host": "home.local:8123",
                "X-Ingress-Path": "/api/hassio_ingress/aB-c_9",
            }
            request = urllib.request.Request(own, headers=headers)
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                page = answer.read().decode()
            assert "wss://home.local:8123/api/hassio_ingress/aB-c_9/ws" in page
            assert "https://home.local:8123/api/hassio_ingress/aB-c_9/static/js/" in page
            assert str(port) not in page
            assert status(own) == 200
            assert status(own, **{"X-Ingress-Path": '"><script>'}) == 400
            # another address of this machine is not the proxy's
            with socket.create_connection(
                ("127.0.0.1", port), source_address=("127.0.0.2", 0)
            ) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert b" 403 " in s.recv(100)
        finally:
            server.terminate()
            server.wait(SECONDS)
