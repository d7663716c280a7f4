"""The rights of clients' sessions, also when access rules change."""

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
"""Sessions that get new rights in one turn: some 3 ms."""


def origin_of(client: Client) -> Origin:
    """Return the origin of an accepted client, the same object for all clients with that origin."""
    return _origin(client.info.listener, client.info.local, client.proven)


@lru_cache(maxsize=64)
def _origin(listener: str | None, local: bool, proven: bool) -> Origin:
    return Origin(listener, local, proven)


def access_of(client: Client, packet: Connect) -> Access:
    """Return the rights of an accepted client."""
    origin = origin_of(client)
    return client.info.access.access(
        packet.username, packet.client_id, local=origin.local, proven=origin.proven
    )


def is_owner(session: Session, username: str | None, origin: Origin) -> bool:
    """Return whether a client with this user name and origin owns the session.

    A session of a proven user name is not for a client that merely claims the name.
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
    """Give a session a new connection of its owner, with the rights of that connection.

    A session's home is the listener of its first connection. It stays the home for as long as the
    session lasts, unless that listener was removed or the user name was not proven.
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
    """Give a restored session the rights that its owner has now at the home listener."""
    session.home = session.origin = home = listeners.origin(home)
    access = listeners.access(session.username, session.client_id, home)
    session.grant(access, access)


def apply(state: State, policies: Iterable[AccessPolicy], now: float) -> Pieces[None]:
    """Apply the current rules of all listeners, also to existing subscriptions.

    `now` is the monotonic second. The work is done in pieces, one session after another.
    """
    restricts = any(policy.restricted for policy in policies)
    state.router.restricts = state.router.restricts or restricts
    sessions = iter(list(state.sessions.values()))
    while some := list(islice(sessions, AT_ONCE)):
        for session in some:
            if _grant(session, now):  # filters may have been evaluated for thousands of messages
                state.admissions.forget_all()
                yield
        # admissions made between two pieces used rules that were half applied
        state.admissions.forget_all()
        yield
    state.router.restricts = restricts
    state.admissions.forget_all()
    state.channels.rules_changed()


def move(state: State, listeners: Container[str]) -> Pieces[None]:
    """Give the disconnected sessions of these home listeners their current rights.

    The listeners were removed, or have rules of another origin.
    """
    sessions = iter(list(state.sessions.values()))
    while some := list(islice(sessions, AT_ONCE)):
        for session in some:
            if session.connection is None and session.home.listener in listeners:
                restore_rights(state.listeners, session, session.home)
        state.admissions.forget_all()
        yield


def current(access: Access, session: Session) -> Access:
    """Return the access of a session's user by the current rules."""
    return access.policy.access(
        session.username, session.client_id, local=access.local, proven=access.proven
    )


def _grant(session: Session, now: float) -> bool:
    """Apply changed rules and send what may be read now; return whether messages waited."""
    session.grant(current(session.access, session), current(session.granted, session))
    waited = bool(session.unchecked or session.inflight.resend)
    if waited:
        session.pump(now)
    return waited
