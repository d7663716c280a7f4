"""`tidegate tui --serve`: the same screens in a browser, by textual-serve."""

import hmac
import importlib
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

web: Any = importlib.import_module("aiohttp.web")
textual_serve: Any = importlib.import_module("textual_serve.server")

HOST = "127.0.0.1"
COOKIE = "tidegate_tui"
OUTSIDE = re.compile(r'<link[^>]*"https?://fonts[^>]*>')
"""a font that the page would load from elsewhere"""
FOCUS = """<script>new MutationObserver((_, observer) => {
  const terminal = document.querySelector('.xterm-helper-textarea');
  if (terminal) { terminal.focus(); observer.disconnect(); }
}).observe(document.documentElement, {childList: true, subtree: true});</script></head>"""
"""gives the keys to the terminal without a click"""


def run(words: Sequence[str], port: int) -> int:
    """Serve what this command line shows without `--serve`, until it is stopped; return 0."""
    token = secrets.token_urlsafe(16)
    server = textual_serve.Server(_command(words), host=HOST, port=port, title="tidegate tui")
    make = server._make_app  # noqa: SLF001 - it has no other place for a guard

    async def make_guarded() -> Any:
        application = await make()
        application.middlewares.append(web.middleware(_guard(f"{HOST}:{port}", token)))
        return application

    async def tell(_: Any) -> None:
        text = f"open http://{HOST}:{port}/?token={token}\n"
        sys.stdout.write(text + "who has it can see and do what you may; ctrl+c ends\n")
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


def _command(words: Sequence[str]) -> str:
    """Return the command line without what is about serving."""
    found, skip = [], False
    for word in words:
        if skip or word == "--serve":
            skip = False
        elif word == "--port":
            skip = True
        elif not word.startswith("--port="):
            found.append(word)
    return shlex.join(found)
