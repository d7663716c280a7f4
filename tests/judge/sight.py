"""What a client sees of a copy."""

from tests.conformance.support import wire
from tests.conformance.support.answers import Properties, Publish, Value
from tests.judge.disagreement import check
from tests.judge.messages import Copy
from tests.judge.player import Player


def resolve(player: Player, publish: Publish) -> Publish:
    """Return the PUBLISH with the topic that its alias stands for."""
    alias = next((value for key, value in publish.properties if key == wire.TOPIC_ALIAS), None)
    if alias is None:
        check(publish.topic, f"{player.name}: no topic")
        return publish
    assert isinstance(alias, int)
    check(0 < alias <= player.profile.alias_maximum, f"{player.name}: alias {alias}")
    check(not publish.dup, f"{player.name}: alias in a repeated PUBLISH")
    if publish.topic:
        player.aliases[alias] = publish.topic.decode()
    check(alias in player.aliases, f"{player.name}: unknown alias {alias}")
    rest = [pair for pair in publish.properties if pair[0] != wire.TOPIC_ALIAS]
    return publish._replace(topic=player.aliases[alias].encode(), properties=rest)


def is_seen(player: Player, copy: Copy, publish: Publish, now: float) -> bool:
    """Return whether this is what a client sees of a copy at this monotonic second."""
    message = copy.message
    expired = message.expires <= now and not (publish.dup or player.stale)
    if (
        expired
        or message.payload != publish.payload
        or message.topic.encode() != publish.topic
        or (copy.qos, copy.retain) != (publish.qos, publish.retain)
    ):
        return False
    if player.version < wire.MQTT_5:
        return True
    expected: list[tuple[int, Value]] = [*message.properties]
    expected += [(wire.SUBSCRIPTION_IDENTIFIER, each) for each in copy.identifiers]
    interval = None
    found: list[tuple[int, Value]] = []
    for key, value in publish.properties:
        if key == wire.MESSAGE_EXPIRY_INTERVAL:
            interval = value
        else:
            found.append((key, value))
    if _sorted(expected) != _sorted(found):
        return False
    if message.interval is None or interval is None:
        return message.interval is interval
    assert isinstance(interval, int)
    left = max(0, message.interval - int(now - message.accepted))
    most = message.interval if player.stale or publish.dup else left + 1
    return left <= interval <= most


def _sorted(properties: Properties) -> Properties:
    """Return properties by identifier, those of users in their order, other numbers by size."""
    users = [pair for pair in properties if pair[0] == wire.USER_PROPERTY]
    return sorted((pair for pair in properties if pair not in users), key=repr) + users
