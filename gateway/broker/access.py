"""Who may connect, and what becomes of access rules that change while clients are connected."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from gateway.access.access import Access
from gateway.access.policy import AccessPolicy
from gateway.broker.instant import Instant
from gateway.mqtt.packets import Connect
from gateway.pieces import Pieces
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker
    from gateway.broker.client import Client


AT_ONCE = 200
"""Sessions that are given new rights between two turns of all others, some 3 ms."""

Decide: TypeAlias = Callable[[bool | None, Instant], None]
"""Takes whether a password is right, None if there was no room to look, and the instant."""


class Credentials(NamedTuple):
    """What a CONNECT says of its client, and the address that it comes from, without a port."""

    address: str
    username: str | None
    password: bytes | None


class Authenticator(Protocol):
    """Decides about the user name and password of a CONNECT."""

    proves: bool
    """Whether a client that it lets in is who its user name says."""

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:
        """Call `decide`, now or in a later turn, with whether the client may connect."""
        ...


class Anonymous:
    """Lets everyone in, whatever user name they give."""

    proves = False

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:  # noqa: ARG002 - a shape
        """Decide at once that the client may."""
        decide(True, instant)  # noqa: FBT003 - the answer


def access_of(client: "Client", packet: Connect) -> Access:
    """Return what a client that was let in may do."""
    info, proven = client.info, client.proven
    return info.access.access(packet.username, packet.client_id, local=info.local, proven=proven)


def access_of_restored(broker: "Broker", session: Session) -> Access:
    """Return what a session may do whose client has not been here since the start."""
    return broker.access.access(session.username, session.client_id, local=False, proven=False)


def apply(broker: "Broker", policies: Iterable[AccessPolicy]) -> Pieces[None]:
    """Let the rules of all listeners hold, as they are now, also for what is subscribed already.

    Others may have their turn at each item: the sessions come one after the other.
    """
    restricts = any(policy.restricted for policy in policies)
    broker.router.restricts = broker.router.restricts or restricts
    sessions = iter(list(broker.sessions.values()))
    while some := list(islice(sessions, AT_ONCE)):
        for session in some:
            _grant(session)
        broker.admissions.forget_all()  # what others had made of rights that were half changed
        yield
    broker.router.restricts = restricts
    broker.admissions.forget_all()


def _grant(session: Session) -> None:
    old = session.access
    session.grant(
        old.policy.access(session.username, session.client_id, local=old.local, proven=old.proven)
    )
