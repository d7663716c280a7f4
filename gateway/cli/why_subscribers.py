"""Which subscriptions a message met, what their filters said, and what is still to be delivered."""

from collections.abc import Iterator

from gateway.cli.where_explain import tree
from gateway.mqtt.message import Message
from gateway.mqtt.topics import split_shared
from gateway.storage.history.reader import HistoryReader
from gateway.storage.history.subscriptions import RecordedSubscription
from gateway.where.compile import COMPILER
from gateway.where.evaluation.predicates import topic_matches
from gateway.where.explain import explain
from gateway.where.language.errors import WhereError
from gateway.where.language.expression import TopicMatches
from gateway.where.language.spelling import spell_value

_ANSWERS = {1: "PUBACK", 2: "PUBREC"}


def subscribers(history: HistoryReader, message: Message, at: int | None) -> Iterator[str]:
    """Give lines for each subscription on the message's topic.

    `at` is the message's row of the history; None for a message that was not sent, which meets
    the subscriptions of now.
    """
    there_were = history.subscriptions(at)
    matching = [each for each in there_were if _matches(each, message)]
    yield f"subscriptions: {len(matching)} of {len(there_were)} are for {message.topic}"
    if message.retain and at is not None:
        yield "RETAIN: who subscribed later may have got it, too, if its filter passed it"
    shown: set[tuple[str, bool]] = set()
    for subscription in matching:
        passed, verdict, lines = _asked(subscription, message)
        yield (
            f"client {subscription.client_id!r} on {subscription.topic_filter},"
            f" QoS {subscription.qos}: {verdict}"
        )
        key = (subscription.expression or "", subscription.identity)
        yield from () if key in shown else lines
        shown.add(key)
        if passed and at is not None:
            yield f"  {_owed(history, subscription, message)}"


def _matches(subscription: RecordedSubscription, message: Message) -> bool:
    _, topic_filter = split_shared(subscription.topic_filter)
    return topic_matches(TopicMatches(topic_filter), COMPILER)(message) is True


def _asked(subscription: RecordedSubscription, message: Message) -> tuple[bool, str, list[str]]:
    """Return whether the message passed, the verdict, and the parts of the expression."""
    if subscription.no_local and subscription.client_id == message.client_id:
        return False, "not sent, No Local: the client published it itself", []
    share_name, _ = split_shared(subscription.topic_filter)
    passed = "passes" if share_name is None else "passes, one member of the group gets it"
    if subscription.expression is None:
        return True, f"no $where, {passed}", []
    try:
        explanation = explain(subscription.expression, message, identity=subscription.identity)
    except WhereError as error:
        return False, "nothing is delivered, its $where is not accepted", [f"  {error}"]
    lines = [f"  {line}" for line in tree(explanation)]
    if explanation.result is not True:
        return False, f"{spell_value(explanation.result)}, filtered", lines
    return True, f"TRUE, {passed}", lines


def _owed(history: HistoryReader, subscription: RecordedSubscription, message: Message) -> str:
    if min(subscription.qos, message.qos) == 0:
        return "at QoS 0 nobody acknowledges it"
    outcomes, client_id = history.outcomes, subscription.client_id
    waiting = outcomes.undelivered(client_id, message)
    if waiting is None:
        if outcomes.has_session(client_id):
            return "not owed to its stored session any more: acknowledged, expired or dropped"
        return "its session is not stored: nobody knows here whether it was acknowledged"
    if waiting.packet_id is None:
        return "waits in its session's queue"
    answer = "PUBCOMP" if waiting.released else _ANSWERS[min(subscription.qos, message.qos)]
    return f"sent with packet identifier {waiting.packet_id}, {answer} has not come yet"
