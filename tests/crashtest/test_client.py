import asyncio
from contextlib import suppress

from crashtest.client import Client
from gateway.mqtt.packets import Connect
from tests.support.ports import free_port


async def test_a_client_that_is_cancelled_before_it_is_answered_closes_its_connection() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        asked.set()
        await reader.read()
        ended.set()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(say_nothing, "127.0.0.1", port):
        connecting = asyncio.create_task(Client.connect(port, Connect("c")))
        await asked.wait()
        connecting.cancel()
        with suppress(asyncio.CancelledError):
            await connecting
        await asyncio.wait_for(ended.wait(), 60)
