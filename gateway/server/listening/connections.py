"""The connections of one listener."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from gateway.access.access import OPEN, AccessPolicy
from gateway.access.listeners import ListenerRights
from gateway.broker.access import AT_ONCE
from gateway.broker.connecting.connection_info import Authenticator, ConnectionInfo
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pieces import Pieces
from gateway.server.listening.connection_limits import ConnectionLimits, Verdict
from gateway.server.listening.newcomers import Newcomers
from gateway.server.transport import ClientTransport, is_local
from gateway.server.transport_stack import TransportStack
from gateway.server.turn import Turn
from gateway.session.durability_class import DurabilityClass
from gateway.settings.durability import commit_within
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    from gateway.server.passwords.file import PasswordFile
    from gateway.server.passwords.logins import PasswordLogins


class Connections:
    """Makes a client of each connection that its listener's limits admit, and tracks them.

    The `authenticator` checks their user names and passwords.
    """

    __slots__ = (
        "_durability_class",
        "_newcomers",
        "_on_lost",
        "_plain",
        "_settings",
        "_shared_info",
        "_stack",
        "_turn",
        "access",
        "authenticator",
        "clients",
        "limits",
    )

    def __init__(
        self,
        settings: ListenerSettings,
        authenticator: Authenticator,
        turn: Turn,
        stack: TransportStack,
        limits: ConnectionLimits,
        access: AccessPolicy = OPEN,
    ) -> None:
        self.clients: set[ClientTransport] = set()
        self._turn = turn
        self._stack = stack
        self.limits = limits
        self.change(settings, authenticator, access)
        self._on_lost = self._lost  # one object for all connections
        self._newcomers = Newcomers(self._lost)
        limits.watch(self._newcomers)

    def change(
        self, settings: ListenerSettings, authenticator: Authenticator, access: AccessPolicy
    ) -> None:
        """Apply these settings to new connections; the transport stack has its own already."""
        self.authenticator = authenticator
        self.access = access
        self._settings = settings
        self._plain = self._stack.none
        self._durability_class = (
            None
            if settings.durability is None
            else DurabilityClass(commit_within(settings.durability))
        )
        local = self._describe(None, None, None, local=True)
        remote = self._describe(None, None, None, local=False)
        self._shared_info: Callable[[asyncio.BaseTransport], ConnectionInfo] = lambda transport: (
            local if is_local(transport) else remote
        )

    @property
    def logins(self) -> "PasswordLogins":
        """The login check of a listener that has a password file."""
        return cast("PasswordLogins", self.authenticator)

    @property
    def users(self) -> "PasswordFile":
        """The users of a listener that has a password file."""
        return self.logins.file

    @property
    def rights(self) -> ListenerRights:
        """The present access rules and users of the listener."""
        if self._settings.password_file is None:
            return ListenerRights(self.access, None, self._settings.tls_identity is not None)

        def is_user(name: str) -> bool:
            return self.users.has(name)  # a later file, once it was replaced

        return ListenerRights(self.access, is_user, proves=True)

    def replace_users(self, file: "PasswordFile") -> Pieces[None]:
        """Use this file from now on; clients whose password changed must log in again.

        The authenticator is one of a password file. The work is done in pieces, one client after
        another.
        """
        logins = self.logins
        old, logins.file = logins.file, file
        for number, client in enumerate(list(self.clients), start=1):
            username = client.username
            if username is not None and not file.same(old, username):
                reason = "the user's password has changed, or the user was removed"
                client.disconnect(ReasonCode.NOT_AUTHORIZED, reason)
            if number % AT_ONCE == 0:
                yield

    def accept(self) -> Any:
        """Return the protocol of a new connection; its socket closes if it is not admitted."""
        now = self._turn.now().monotonic
        verdict = self.limits.judge(now)
        if verdict is Verdict.CLOSED:
            return _Closed()
        info = self._shared_info
        if verdict is Verdict.REFUSED or not self._plain:
            info = partial(self._info, now, verdict is Verdict.REFUSED)
        client = ClientTransport(self._turn, self.authenticator, info, self._on_lost)
        self.clients.add(client)
        protocol = client if self._plain else self._stack.around(client)
        if verdict is Verdict.ADMITTED:
            self._newcomers.add(client, protocol)
        return protocol

    def _info(
        self, opened: float, refused: bool, transport: asyncio.BaseTransport
    ) -> ConnectionInfo:
        """Return what distinguishes one connection from others of the listener."""
        username = refusal = None
        if refused:
            refusal = f"this listener holds its {self.limits.maximum} connections"
        if self._settings.tls_identity is not None:
            from gateway.server.tls.context import common_name

            username = common_name(transport.get_extra_info("peercert"))
        return self._describe(opened, username, refusal, local=is_local(transport))

    def _describe(
        self, opened: float | None, username: str | None, refusal: str | None, *, local: bool
    ) -> ConnectionInfo:
        settings = self._settings
        return ConnectionInfo(
            opened,
            username,
            settings.maximum_packet_size,
            settings.maximum_keep_alive,
            refusal,
            self._durability_class,
            settings.delivery,
            settings.where_identity,
            local,
            self._stack.occupied,
            self.access,
            settings.name,
            settings.session_takeover == "anyone",
        )

    def abort_all(self) -> None:
        """Close the sockets of all clients now.

        A socket that was accepted while its server closed never becomes a connection: asyncio drops
        it, and its client is forgotten here.
        """
        for client in list(self.clients):
            if client.connected:
                client.abort()
            else:
                self._lost(client)

    def _lost(self, client: ClientTransport) -> None:
        if client in self.clients:  # a handshake that is aborted ends after `abort_all`
            self.clients.remove(client)
            self._newcomers.discard(client)
            self.limits.release()


class _Closed(asyncio.Protocol):
    """Closes a connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()
