"""What the sessions of clients may do, also when access rules change."""

from collections.abc import Container, Iterable
from functools import lru_cache
from itertools import islice

from gateway.access.access import Access, AccessPolicy
from gateway.access.listeners import Listeners, Origin
from gateway.broker.client import Client
from gateway.broker.publishing.topic_admissions import TopicAdmissions
from gateway.broker.state import State
from gateway.mqtt.packets import Connect
from gateway.pieces import Pieces
from gateway.routing.router import Router
from gateway.session.session import Session

AT_ONCE = 200
"""Sessions that are given new rights between two turns of all others, some 3 ms."""


def origin_of(client: Client) -> Origin:
    """Return how a client that was let in came, the same object for all who came so."""
    return _origin(client.info.listener, client.info.local, client.proven)


@lru_cache(maxsize=64)
def _origin(listener: str | None, local: bool, proven: bool) -> Origin:
    return Origin(listener, local, proven)


def access_of(client: Client, packet: Connect) -> Access:
    """Return what a client that was let in may do."""
    origin = origin_of(client)
    return client.info.access.access(
        packet.username, packet.client_id, local=origin.local, proven=origin.proven
    )


def is_owner(session: Session, username: str | None, origin: Origin) -> bool:
    """Return whether a client that came so is the user whose session it is.

    Who proved a name once is not anybody who merely claims it.
    """
    claimed = session.home.proven and not origin.proven
    return session.username == username and (username is None or not claimed)


def grant(
    router: Router,
    admissions: TopicAdmissions,
    session: Session,
    client: Client,
    packet: Connect,
) -> None:
    """Let a session have a new connection of its owner, with the rights of that connection.

    A session begins at the listener of its first connection. Its owner is at home there for as
    long as it lasts, unless its listener is not there any more, or its user name was not proven.
    """
    origin, granted = origin_of(client), access_of(client, packet)
    home = session.home
    session.origin = origin
    access = session.access
    proves = session.username is not None and origin.proven and not home.proven
    if home.listener is None or proves:
        session.home, access = origin, granted
        if access is not session.access and router.count(session):
            admissions.forget_all()  # their routes were found for other rights
    session.grant(access, granted)


def restore_rights(listeners: Listeners, session: Session, home: Origin) -> None:
    """Let a session that an earlier run left have the rights that its owner has at home now."""
    session.home = session.origin = home = listeners.origin(home)
    access = listeners.access(session.username, session.client_id, home)
    session.grant(access, access)


def apply(state: State, policies: Iterable[AccessPolicy], now: float) -> Pieces[None]:
    """Let the rules of all listeners hold, as they are now, also for what is subscribed already.

    `now` is the monotonic second. Others may have their turn at each item: the sessions come one
    after the other.
    """
    restricts = any(policy.restricted for policy in policies)
    state.router.restricts = state.router.restricts or restricts
    sessions = iter(list(state.sessions.values()))
    while some := list(islice(sessions, AT_ONCE)):
        for session in some:
            if _grant(session, now):  # thousands of messages may have been asked about
                state.admissions.forget_all()
                yield
        state.admissions.forget_all()  # what others had made of rights that were half changed
        yield
    state.router.restricts = restricts
    state.admissions.forget_all()
    state.channels.rules_changed()


def move(state: State, listeners: Container[str]) -> Pieces[None]:
    """Let the sessions that are away, and whose home is there, have their rights of now.

    Those listeners are no more, or have rules of another origin.
    """
    sessions = iter(list(state.sessions.values()))
    while some := list(islice(sessions, AT_ONCE)):
        for session in some:
            if session.connection is None and session.home.listener in listeners:
                restore_rights(state.listeners, session, session.home)
        state.admissions.forget_all()
        yield


def current(access: Access, session: Session) -> Access:
    """Return an access of a session's user as the rules are now."""
    return access.policy.access(
        session.username, session.client_id, local=access.local, proven=access.proven
    )


def _grant(session: Session, now: float) -> bool:
    """Let rules that have changed hold, and send what may be read now; return if any waited."""
    session.grant(current(session.access, session), current(session.granted, session))
    waited = bool(session.unchecked or session.inflight.resend)
    if waited:
        session.pump(now)
    return waited
