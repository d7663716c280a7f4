"""Tasks that run beside everything else, and whose unexpected end is logged."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger("gateway.app")


def background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that nobody awaits before the end; log an error that ends it.

    asyncio logs such an error only when the task is deleted, and these are kept.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_log_error)
    return task


def _log_error(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        name = getattr(task.get_coro(), "__qualname__", task.get_name())
        logger.error("unexpected error: %s has ended", name, exc_info=error)
