"""The figures and the health of a gateway over HTTP (docs/operate/metrics.md)."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from gateway.app.bridges import Bridges
from gateway.app.parts import Run
from gateway.config.configuration import Configuration
from gateway.settings.metrics import MetricsSettings
from gateway.settings.uplinks import rules_of
from gateway.storage.engine.writer import Writer
from gateway.telemetry.sys_topics import SysTopics

if TYPE_CHECKING:
    from gateway.telemetry.http_server import HttpServer, Page

logger = logging.getLogger(__name__)


class Metrics:
    """The HTTP server of figures and health; without one, nothing of it is in memory."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._server: HttpServer | None = None
        self._pages: dict[str, Callable[[], Page]] = {}
        self._sources: tuple[Writer, SysTopics, Bridges] | None = None
        run.stack.push_async_callback(self.close)

    async def bind(self) -> None:
        """Bind the address, if one is configured; raise StartError if that fails."""
        settings = self._run.configuration.metrics
        if settings is not None:
            self._server = self._make(settings)
            await self._server.bind()
            logger.info("metrics at http://%s/metrics", self._server.address)

    async def serve(self, writer: Writer, sys_topics: SysTopics, bridges: Bridges) -> None:
        """Start to answer, also at an address that becomes available later; raise StartError."""
        self._sources = writer, sys_topics, bridges
        if self._server is not None:
            await self._open(self._server)

    async def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    async def prepare(
        self, old: Configuration, new: Configuration, stack: AsyncExitStack
    ) -> Callable[[], Awaitable[None]]:
        """Bind another address, in place of the present server if necessary; raise StartError."""
        before, coming = self._server, None
        if new.metrics is not None and old.metrics != new.metrics:
            coming = self._make(new.metrics)
            if before is not None and before.port == coming.port:
                await before.close()
                stack.push_async_callback(self._open_again, before)
            stack.push_async_callback(coming.close)
            await coming.bind()
            await self._open(coming)

        async def switch() -> None:
            if old.metrics != new.metrics:
                await self.close()
                self._server = coming

        return switch

    def _make(self, settings: MetricsSettings) -> "HttpServer":
        from gateway.telemetry.http_server import HttpServer

        return HttpServer(settings.host, settings.port, {}, self._run.counters, settings.hosts)

    async def _open(self, server: "HttpServer") -> None:
        if not self._pages and self._sources is not None:
            self._pages = metrics_pages(self._run, *self._sources)
        server.pages = self._pages
        await server.serve()

    async def _open_again(self, server: "HttpServer") -> None:
        await server.bind()
        await self._open(server)


def metrics_pages(
    run: Run, writer: Writer, sys_topics: SysTopics, bridges: Bridges
) -> "dict[str, Callable[[], Page]]":
    """Return the pages by path: figures, health, and liveness."""
    from http import HTTPStatus

    from gateway.app.certificates import certificate_files
    from gateway.telemetry.certificates import certificate_metrics
    from gateway.telemetry.health import Heartbeat, trouble
    from gateway.telemetry.http_server import Page
    from gateway.telemetry.metrics import CONTENT_TYPE, alarm_metrics, exposition, rule_metrics
    from gateway.telemetry.process_metrics import process_metrics

    heartbeat = Heartbeat()
    heartbeat.start()
    run.stack.callback(heartbeat.stop)

    def metrics() -> Page:
        sys_topics.update()
        text = exposition(run.counters.values, bridges.figures())
        text += process_metrics() + certificate_metrics(certificate_files(run.configuration))
        text += alarm_metrics(run.alarm.states)
        text += rule_metrics([each.rule for each in rules_of(run.configuration.uplinks)])
        return Page(text, content_type=CONTENT_TYPE)

    def health() -> Page:
        own = trouble(writer, heartbeat)
        reason = "; ".join(filter(None, (own, *(ask() for ask in run.troubles))))
        return Page(
            f"{reason or 'ok'}\n", HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
        )

    def alive() -> Page:
        return Page("ok\n")  # an answer proves that the event loop runs

    return {"/metrics": metrics, "/healthz": health, "/readyz": health, "/livez": alive}
