"""PORT FILTER [QOS]: a consumer that takes messages out of aiomqtt's list one by one."""

import asyncio
import sys

import aiomqtt  # type: ignore[import-not-found]  # tests/support/get_clients.sh fetches it


async def main(port: str, topic_filter: str, qos: str = "") -> None:
    """Print what SUBSCRIBE got, and each message."""
    async with aiomqtt.Client("127.0.0.1", int(port)) as client:
        (code,) = await client.subscribe(topic_filter, *map(int, qos))
        print("refused" if int(getattr(code, "value", code)) >= 128 else "subscribed", flush=True)
        async for message in client.messages:
            assert isinstance(message.payload, bytes)
            print(message.payload.decode(), flush=True)


asyncio.run(main(*sys.argv[1:]))
