"""The sections of the broker: what a reload changes while clients are connected."""

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.app.reload.conftest import Changing
from tests.support.raw_client import RawClient

JOBS = '[[channel]]\nname = "jobs"\nfilter = "work/#"\n'


async def code_of(client: RawClient, topic: str, payload: bytes = b"x") -> int:
    """Return the reason code of a QoS 1 message."""
    await client.send(Publish(topic, payload, 1, packet_id=9))
    while not isinstance(packet := await client.receive(), PubAck):
        pass
    return packet.reason_code


async def next_on(client: RawClient, topic: str) -> Publish:
    """Return the next message on a topic, acknowledged."""
    while True:
        packet = await client.receive()
        if isinstance(packet, Publish) and packet.topic == topic:
            if packet.qos:
                await client.send(PubAck(packet.packet_id))
            return packet


async def test_limits_hold_for_clients_that_are_there(changing: Changing) -> None:
    await changing.start("")
    client = await changing.clients.connect("c")
    assert await client.subscribe("a/#", 1) == 1
    assert await code_of(client, "x/1/2/3/4/5") == 0x10
    keys = await changing.changed(
        "[broker]\nmaximum_topic_levels = 5\nmaximum_subscriptions = 1\nmaximum_inflight = 7\n"
        "maximum_queued_messages = 5\nremembered_topics = 10\nfailed_login_delay = 0\n"
        "maximum_share = 100\nsys_interval = 0.5\np2p = true\nunconfigured_channels = 'durable'\n"
        '[memory]\nlimit = "100MiB"\n[storage]\ndurability = "memory"\n'
    )
    assert "broker.maximum_topic_levels" in keys
    assert "memory.limit" in keys
    broker = changing.gateway.broker
    assert await code_of(client, "x/1/2/3/4/5") == 0x90
    assert await client.subscribe("b/#", 1) == 0x97
    assert broker.sessions["c"].queue.maximum_messages == 5
    assert broker.memory.limit <= 100 * 1024 * 1024
    assert await code_of(client, "b/2") == 0x10  # and is remembered
    (row,) = (await changing.operator.ask("topics"))["rows"]
    assert row["topic"] == "b/2"
    assert changing.gateway.telemetry.sys_topics.interval == 0.5
    await changing.changed("")
    assert await client.subscribe("b/#", 1) == 1
    assert "remembered_topics is 0" in await changing.operator.refused("topics")


async def test_classes_and_filters_of_clients_change(changing: Changing) -> None:
    await changing.start("")
    await changing.clients.connect("app-1")
    await changing.changed(
        '[[subscription_filter]]\nclient = "app-*"\nfilter = "s/#"\nwhere = "payload.value > 5"\n'
        '[[durability]]\ntopic = "s/#"\nclass = "batch(100)"\n'
        '[delivery]\nflush_sessions = 17\n[delivery.device]\npolicy = "buffered"\n'
        '[[delivery.rule]]\nclass = "application"\nclient = "app-2"\n'
    )
    broker = changing.gateway.broker
    assert broker.sessions["app-1"].delivery.policy.count > 1  # at once
    assert changing.gateway.turn.flushes.maximum == 17
    assert broker.durability_classes.of_topic("s/1") is not None
    late = await changing.clients.connect("app-2")
    assert broker.sessions["app-2"].delivery.name == "application"
    await late.subscribe("s/#")
    sender = await changing.clients.connect("sender")
    for value in (b'{"value":1}', b'{"value":9}'):
        await sender.send(Publish("s/1", value))
    assert (await next_on(late, "s/1")).payload == b'{"value":9}'


async def test_a_channel_comes_among_its_consumers(changing: Changing) -> None:
    await changing.start("")
    worker = await changing.clients.connect("worker")
    await worker.subscribe("$share/jobs/work/#", 1)
    assert await changing.changed(JOBS) == ["channel[0]"]
    sender = await changing.clients.connect("sender")
    assert await code_of(sender, "work/1", b"one") == 0
    assert (await next_on(worker, "work/1")).payload == b"one"
    await worker.close()
    assert await code_of(sender, "work/2", b"two") == 0  # waits for whoever comes
    (channel,) = changing.gateway.broker.channels
    assert channel.persistent
    other = await changing.clients.connect("other")
    await other.subscribe("$share/jobs/work/#", 1)
    assert (await next_on(other, "work/2")).payload == b"two"


async def test_a_channel_changes_and_stays_with_its_messages(changing: Changing) -> None:
    await changing.start(JOBS)
    sender = await changing.clients.connect("sender")
    assert await code_of(sender, "work/1") == 0
    more = (
        'choice = "sticky"\nmaximum_messages = 1\ninflight_timeout = 5\nmax_attempts = 3\n'
        'maximum_message_size = 10\ndead_letter_topic = "dead"\nmemory_messages = 50\n'
    )
    keys = await changing.changed(JOBS + more)
    assert "channel[0].maximum_messages" in keys
    (channel,) = changing.gateway.broker.channels
    assert channel.settings.max_attempts == 3
    assert await code_of(sender, "work/2") == 0x97  # it is full by now
    await changing.changed("")
    (channel,) = changing.gateway.broker.channels
    assert channel.depth == 1  # as in NSQ a channel ends when somebody deletes it
    assert await code_of(sender, "work/2") == 0
    await changing.changed(JOBS)
    worker = await changing.clients.connect("worker")
    await worker.subscribe("$share/jobs/work/#", 1)
    topics = [(await next_on(worker, topic)).topic for topic in ("work/1", "work/2")]
    assert topics == ["work/1", "work/2"]


async def test_a_channel_that_holds_messages_keeps_its_kind(changing: Changing) -> None:
    await changing.start(JOBS)
    sender = await changing.clients.connect("sender")
    assert await code_of(sender, "work/1") == 0
    (refusal,) = (await changing.reload(JOBS + "temporary = true\n"))["refused"]
    assert refusal["key"] == "channel[0].temporary"
    assert "1 messages, which would be lost" in refusal["error"]
    properties = Properties(session_expiry_interval=60)
    worker = await changing.clients.connect("worker", properties=properties)
    await worker.subscribe("$share/jobs/work/#", 1)
    await next_on(worker, "work/1")
    await worker.waiting()
    await changing.changed(JOBS + "temporary = true\n")
    (channel,) = changing.gateway.broker.channels
    assert channel.settings.in_memory
    assert await code_of(sender, "work/2") == 0
    await next_on(worker, "work/2")
    await worker.waiting()
    await changing.changed(JOBS)
    (channel,) = changing.gateway.broker.channels
    assert channel.persistent
    await changing.changed('[[channel]]\nname = "other#tmp"\nfilter = "x"\n')
    assert [each.settings.share_name for each in changing.gateway.broker.channels] == ["jobs"]


async def test_channels_of_consumers_become_configured_ones_and_stay(changing: Changing) -> None:
    kind = "[broker]\nunconfigured_channels = '{}'\n"
    await changing.start(kind.format("durable") + '[[channel]]\nname = "t#tmp"\nfilter = "t"\n')
    worker = await changing.clients.connect("worker")
    await worker.subscribe("$share/jobs/work/#", 1)
    await worker.subscribe("$share/t/t", 1)
    shares = changing.gateway.broker.shares.channels
    assert shares.total == 1
    await changing.changed(kind.format("durable") + JOBS + "max_attempts = 2\n")
    assert shares.total == 0  # it is the configuration's
    channels = {each.settings.share_name: each for each in changing.gateway.broker.channels}
    assert channels["jobs"].settings.max_attempts == 2
    assert set(channels) == {"jobs", "t"}  # the temporary one has a consumer
    await changing.changed(kind.format("temporary"))
    assert channels["jobs"].settings.max_attempts == 20
    sender = await changing.clients.connect("sender")
    for topic in ("work/1", "t"):
        assert await code_of(sender, topic) == 0
        assert (await next_on(worker, topic)).payload == b"x"
