"""The figures and the health of a gateway for programs that ask over HTTP (docs/metrics.md)."""

import logging
from typing import TYPE_CHECKING

from gateway.app.bridges import Bridges
from gateway.app.parts import Run
from gateway.storage.engine.writer import Writer
from gateway.telemetry.sys_topics import SysTopics

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.telemetry.http_server import HttpServer, Page

logger = logging.getLogger(__name__)


async def bind_metrics(run: Run) -> "HttpServer | None":
    """Return the server at which they are asked for, not open yet; None if it is not configured.

    Raises StartError if its address cannot be had.
    """
    settings = run.configuration.metrics
    if settings is None:
        return None
    from gateway.telemetry.http_server import HttpServer

    server = HttpServer(settings.host, settings.port, {}, run.counters, settings.hosts)
    run.stack.push_async_callback(server.close)
    await server.bind()
    logger.info("metrics at http://%s/metrics", server.address)
    return server


def metrics_pages(
    run: Run, writer: Writer, sys_topics: SysTopics, bridges: Bridges
) -> "dict[str, Callable[[], Page]]":
    """Return the pages by path: the figures, whether all is well, and that it is alive."""
    from http import HTTPStatus

    from gateway.app.certificates import certificate_files
    from gateway.telemetry.certificates import certificate_metrics
    from gateway.telemetry.health import Heartbeat, trouble
    from gateway.telemetry.http_server import Page
    from gateway.telemetry.metrics import CONTENT_TYPE, exposition
    from gateway.telemetry.process_metrics import process_metrics

    files = certificate_files(run.configuration)

    heartbeat = Heartbeat()
    heartbeat.start()
    run.stack.callback(heartbeat.stop)

    def metrics() -> Page:
        sys_topics.update()
        text = exposition(run.counters.values, bridges.figures())
        text += process_metrics() + certificate_metrics(files)
        return Page(text, content_type=CONTENT_TYPE)

    def health() -> Page:
        own = trouble(writer, heartbeat)
        reason = "; ".join(filter(None, (own, *(ask() for ask in run.troubles))))
        return Page(
            f"{reason or 'ok'}\n", HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
        )

    def alive() -> Page:
        return Page("ok\n")  # that it is answered says it: the event loop turns

    return {"/metrics": metrics, "/healthz": health, "/readyz": health, "/livez": alive}
