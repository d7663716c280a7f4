"""`tidegate tui --serve`: the same screens in a browser, by textual-serve."""

import hmac
import importlib
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

web: Any = importlib.import_module("aiohttp.web")
textual_serve: Any = importlib.import_module("textual_serve.server")

HOST = "127.0.0.1"
ANY_HOST = "0.0.0.0"  # noqa: S104 - only the proxy's address is answered
FORWARDED = {
    "X-Forwarded-Proto": re.compile("https?"),
    "X-Forwarded-Host": re.compile(r"[\w.:\[\]-]+"),
    "X-Ingress-Path": re.compile(r"[\w./-]*"),
}
"""headers of a proxy that say where the browser sees the page, and their forms"""
WITH_VALUE = ("--port", "--behind")
COOKIE = "tidegate_tui"
OUTSIDE = re.compile(r'<link[^>]*"https?://fonts[^>]*>')
"""a font that the page would load from elsewhere"""
FOCUS = """<script>new MutationObserver((_, observer) => {
  const terminal = document.querySelector('.xterm-helper-textarea');
  if (terminal) { terminal.focus(); observer.disconnect(); }
}).observe(document.documentElement, {childList: true, subtree: true});</script></head>"""
"""gives the keys to the terminal without a click"""


def run(words: Sequence[str], port: int, behind: str | None = None) -> int:
    """Serve what this command line shows without `--serve`, until it is stopped; return 0.

    `behind` is the address of a proxy that lets in only users that it knows, such as Home
    Assistant's ingress: only the proxy is answered then, and no token is needed.
    """
    token, own = secrets.token_urlsafe(16), f"{HOST}:{port}"
    server = textual_serve.Server(
        _command(words),
        host=HOST if behind is None else ANY_HOST,
        port=port,
        title="tidegate tui",
        public_url=f"http://{own}",
    )
    make = server._make_app  # noqa: SLF001 - it has no other place for a guard
    guard = _guard(own, token) if behind is None else _proxy_guard(own, behind)

    async def make_guarded() -> Any:
        application = await make()
        application.middlewares.append(web.middleware(guard))
        return application

    async def tell(_: Any) -> None:
        text = f"open http://{own}/?token={token}\nwho has it can see and do what you may"
        if behind is not None:
            text = f"port {port} is open to {behind} only"
        sys.stdout.write(f"{text}; ctrl+c ends\n")
        sys.stdout.flush()

    server._make_app, server.on_startup = make_guarded, tell  # noqa: SLF001
    server.serve()
    return 0


def _guard(own: str, token: str) -> Callable[[Any, Any], Any]:
    """Return what lets nobody in without the token, nor pages of other sites by a browser."""

    async def guard(request: Any, handler: Any) -> Any:
        origin = request.headers.get("Origin", f"http://{own}")
        if request.host != own or origin != f"http://{own}":
            raise web.HTTPForbidden(text=f"only http://{own} is served\n")
        given = request.query.get("token") or request.cookies.get(COOKIE, "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise web.HTTPForbidden(text="the address needs the token that was printed\n")
        response = await handler(request)
        if not response.prepared:
            if request.path == "/":
                response.text = OUTSIDE.sub("", response.text).replace("</head>", FOCUS, 1)
            response.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
        return response

    return guard


def _proxy_guard(own: str, behind: str) -> Callable[[Any, Any], Any]:
    """Return what answers only the proxy, with addresses that its browser can reach."""

    async def guard(request: Any, handler: Any) -> Any:
        if request.remote != behind:
            raise web.HTTPForbidden(text=f"only {behind} is served\n")
        response = await handler(request)
        if request.path == "/":
            scheme, host, path = _forwarded(request.headers, request.host)
            text = OUTSIDE.sub("", response.text).replace("</head>", FOCUS, 1)
            for name in ("http", "ws"):
                there = f"{scheme.replace('http', name)}://{host}{path.rstrip('/')}"
                text = text.replace(f"{name}://{own}", there)
            response.text = text
        return response

    return guard


def _forwarded(headers: Mapping[str, str], host: str) -> list[str]:
    """Return the scheme, host and path under which the browser sees the page."""
    given = {"X-Forwarded-Proto": "http", "X-Forwarded-Host": host, "X-Ingress-Path": ""}
    given |= {name: headers[name] for name in FORWARDED if name in headers}
    for name, form in FORWARDED.items():
        if not form.fullmatch(given[name]):
            raise web.HTTPBadRequest(text=f"{name} is malformed\n")
    return [*given.values()]


def _command(words: Sequence[str]) -> str:
    """Return the command line without what is about serving."""
    found, skip = [], False
    for word in words:
        if skip or word == "--serve":
            skip = False
        elif word in WITH_VALUE:
            skip = True
        elif word.partition("=")[0] not in WITH_VALUE:
            found.append(word)
    return shlex.join(found)
