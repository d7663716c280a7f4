"""A gateway with a history, and what its subscribers and its publisher said to it."""

import json
from collections.abc import Callable

from gateway.mqtt.packets import PubAck, Publish, Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from tests.support.raw_client import Clients, RawClient

CONFIG = """
[gateway]
id = "barn"
[history]
keep = "1h"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "s/#"
where = "CHANGED(payload.t)"
[[uplink.rule]]
topic = "s/#"
where = "payload.t > 100"
[[subscription_filter]]
client = "panel-*"
filter = "s/#"
where = "payload.t > 2"
"""

HOT = "payload.t > 2 AND $user.site = 'A'"

Change = Callable[[str], str]
"""Takes an SQL script; returns a data folder whose database was changed by it."""


async def converse(port: int) -> None:
    """Publish t = 1, 3, 3 past six subscribers, the last once they are gone."""
    clients = Clients(port)
    own = await clients.connect("own")
    for name, topic_filter, qos, where in (
        ("hot", "s/#", 1, HOT),
        ("lukewarm", "s/+", 2, HOT),
        ("panel-1", "s/#", 0, None),
        ("every", "$share/g/s/1", 1, None),
        ("elsewhere", "t", 1, None),
    ):
        await subscribe(await clients.connect(name), topic_filter, qos, where)
    await subscribe(own, "s/#", 1, None, no_local=True)
    await publish(own, 1)
    await publish(own, 3)
    await clients.close()
    last = Clients(port)
    await publish(await last.connect("own"), 3)
    await last.close()


async def subscribe(
    client: RawClient, topic_filter: str, qos: int, where: str | None, *, no_local: bool = False
) -> None:
    properties = Properties(user_properties=() if where is None else (("$where", where),))
    request = SubscriptionRequest(topic_filter, qos, no_local=no_local)
    await client.send(Subscribe(1, [request], properties))
    await client.receive()


async def publish(client: RawClient, value: int) -> None:
    properties = Properties(user_properties=(("site", "A"),))
    payload = json.dumps({"t": value}).encode()
    await client.send(Publish("s/1", payload, qos=1, packet_id=1, properties=properties))
    assert isinstance(await client.receive(), PubAck)
