"""The figures and the health of a gateway for programs that ask over HTTP (docs/metrics.md)."""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway
    from gateway.telemetry.http_server import HttpServer, Pages

logger = logging.getLogger(__name__)


async def bind_metrics(gateway: "Gateway") -> "HttpServer | None":
    """Return the server at which they are asked for, not open yet; None if it is not configured.

    Raises StartError if its address cannot be had.
    """
    config = gateway.configuration.metrics
    if config is None:
        return None
    from gateway.telemetry.http_server import HttpServer

    server = HttpServer(config.host, config.port, _pages(gateway), gateway.counters, config.hosts)
    gateway.stack.push_async_callback(server.close)
    await server.bind()
    logger.info("metrics at http://%s/metrics", server.address)
    return server


def _pages(gateway: "Gateway") -> "Pages":
    from http import HTTPStatus

    from gateway.telemetry.health import trouble
    from gateway.telemetry.heartbeat import Heartbeat
    from gateway.telemetry.http_server import Page
    from gateway.telemetry.metrics import CONTENT_TYPE, exposition

    heartbeat = Heartbeat()
    heartbeat.start()
    gateway.stack.callback(heartbeat.stop)

    def metrics() -> Page:
        gateway.telemetry.sys_topics.update()
        text = exposition(gateway.counters.values, gateway.bridges.figures())
        return Page(text, content_type=CONTENT_TYPE)

    def health() -> Page:
        own = trouble(gateway.writer, heartbeat)
        reason = "; ".join(filter(None, (own, *(ask() for ask in gateway.troubles))))
        return Page(
            f"{reason or 'ok'}\n", HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
        )

    return {"/metrics": metrics, "/healthz": health}
