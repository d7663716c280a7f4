"""What goes up to the fleet: `[[uplink.rule]]`."""

from dataclasses import dataclass

from gateway.config.checks import (
    boolean,
    number,
    one_of,
    rule_expression,
    stream,
    topic_template,
    unshared_filter,
    uplink_names,
    whole_number,
)
from gateway.config.declaration import key


@dataclass(frozen=True, slots=True)
class RuleConfig:
    """What goes up to the fleet: messages on `topic` for which `where` is TRUE.

    Without any rule `sensors/#` goes up. Within a stream the rules are tried in order, and the
    first whose `where` is TRUE takes the message.
    """

    topic: str = key(
        unshared_filter,
        "topic filter",
    )
    where: str | None = key(
        rule_expression,
        "an expression, which may [remember earlier "
        "messages](where.md#only-what-changed); only messages for which it is TRUE go "
        "up",
        None,
    )
    stream: str = key(
        stream,
        "a message gets a number in each stream that has a rule for its topic",
        "main",
    )
    lane: str = key(
        one_of("live", "backlog"),
        "`backlog`: after all live traffic, also while the link is up",
        "live",
    )
    target: str | None = key(
        topic_template,
        "the topic at the fleet's broker, in which `{gateway}` is the gateway id, `{topic}` the "
        "local topic, `{2}` its second level, and `{2+}` its levels from there on",
        None,
        shown="`tidegate/{gateway}/data/{topic}`",
    )
    retain: bool = key(
        boolean,
        "retained messages are retained at the fleet's broker, too",
        default=False,
    )
    qos: int = key(
        whole_number(0, 1),
        "the QoS at which messages go up; at 0 they are deleted when they have left, and [may be "
        "lost](fleet.md#targets)",
        1,
    )
    commit_within: float | None = key(
        number(0, 60),
        "`commit_within` of these messages, in place of the uplink's",
        None,
        shown="the uplink's",
    )
    uplink: tuple[str, ...] = key(
        uplink_names,
        "the `name` of the [[[uplink]]](fleet.md#several-uplinks) that the messages go up by, or a "
        "list of several",
        (),
        shown="the one above it",
    )

    @property
    def way(self) -> tuple[str | None, bool, int]:
        """How the messages go up: one topic of a stream goes one way."""
        return self.target, self.retain, self.qos
