"""Applies changed settings to a running broker."""

from itertools import islice

from gateway.broker.state import State, alias_budget, queue_memory, session_limits
from gateway.broker.subscribing.expressions import SubscriptionFilters
from gateway.pieces import Pieces
from gateway.settings.broker import BrokerSettings

AT_ONCE = 1_000
"""Sessions whose bounds change in one turn: some 2 ms."""


def change(state: State, settings: BrokerSettings, filters: SubscriptionFilters) -> Pieces[None]:
    """Apply these settings from now on.

    Settings of a CONNECT or a connection apply to new ones. What exceeds a smaller bound stays, but
    nothing is added to it. The work is done in pieces, one session after another.
    """
    state.settings = settings
    state.topic_limits.change(settings.maximum_topic_levels, settings.maximum_topic_length)
    state.failed_logins.first_delay = settings.failed_login_delay
    state.alias_budget.change(alias_budget(settings))
    state.durability_classes.change(settings.durability, settings.default_durability)
    state.delivery_classes.change(settings.delivery)
    state.subscription_filters = filters
    state.expressions.limit = settings.maximum_expressions
    state.shares.change(settings)
    state.conflation.settings = settings
    state.channels.change(settings, settings.queue_when_full)
    state.admissions.p2p = settings.p2p
    state.admissions.maximum_bytes = settings.maximum_route_bytes
    state.admissions.forget_all()  # they were found by the old settings
    queues = queue_memory(settings, on_disk=state.store.durable)
    state.memory.change(settings.memory_limit, queues, settings.maximum_subscription_bytes)
    yield from _change_sessions(state, settings)


def _change_sessions(state: State, settings: BrokerSettings) -> Pieces[None]:
    limits = session_limits(settings, state.queue_memory)
    if limits == state.session_limits:
        return
    state.session_limits = limits
    sessions = iter([state.delays, *state.sessions.values()])
    while some := list(islice(sessions, AT_ONCE)):
        for session in some:
            session.limits = limits
            session.queue.maximum_messages = limits.maximum_queued_messages
            session.queue.maximum_bytes = limits.maximum_queued_bytes
        yield
