"""Adds, changes and removes listeners, and applies the access rules of all of them."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

from gateway.access.access import AccessPolicy
from gateway.access.listeners import Listeners
from gateway.app.access import access_policies
from gateway.app.authenticators import authenticator
from gateway.app.checks.check import overlaps
from gateway.app.listeners import Files, ListenerMaker, between_turns, read_files, rights_of
from gateway.app.parts import Run
from gateway.broker import access
from gateway.config.configuration import Configuration
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.listening.listener import Listener
from gateway.settings.listener import ListenerSettings

FAREWELL_SECONDS = 0.5
"""Seconds until clients of a changed listener are disconnected, so that the requester gets its
answer."""

CHANGED = "the listener has changed; connect again"
GONE = "the listener was removed: the configuration has changed"


class _Coming(NamedTuple):
    """A listener with its new settings; `clients_go` if they connected under other terms."""

    listener: Listener
    settings: ListenerSettings
    policy: AccessPolicy
    files: Files
    clients_go: bool


class ListenersPart:
    """Changes the listeners in place: `listeners` and the policies stay the same lists."""

    def __init__(
        self,
        run: Run,
        maker: ListenerMaker,
        listeners: list[Listener],
        operator_socket: Listener | None,
    ) -> None:
        self._maker = maker
        self._listeners = listeners
        self._sockets = [] if operator_socket is None else [operator_socket]
        self._farewells: set[asyncio.Task[None]] = set()
        run.stack.push_async_callback(self.close)

    async def close(self) -> None:
        """Disconnect the clients that are due for it."""
        if self._farewells:
            await asyncio.wait(self._farewells)

    async def prepare(
        self, old: Configuration, new: Configuration, stack: AsyncExitStack
    ) -> Callable[[], Awaitable[None]]:
        """Bind new addresses and read all files; raise StartError or ConfigurationError."""
        if (old.listeners, old.access) == (new.listeners, new.access):
            return self._limit
        # in a thread: a long file takes longer than others can wait
        fresh = await asyncio.to_thread(access_policies, new)
        known = {each.settings.name: each for each in self._listeners}
        policies = self._policies(new, fresh)
        names = {each.name for each in new.listeners}
        gone = [each for name, each in known.items() if name not in names]
        coming: list[_Coming] = []
        for index, settings in enumerate(new.listeners):
            files = await asyncio.to_thread(read_files, new, index)
            listener = known.get(settings.name)
            if listener is None:
                listener = self._maker.make(new, index, policies[index], files)
                await _bind(listener, gone, stack)
                coming.append(_Coming(listener, settings, policies[index], files, False))  # noqa: FBT003 - a field
                continue
            if listener.settings.mode != settings.mode and settings.path is not None:
                await asyncio.to_thread(os.chmod, settings.path, settings.mode)
                stack.callback(os.chmod, settings.path, listener.settings.mode)
            moved = policies[index] is not listener.connections.access
            clients_go = moved or _terms(settings) != _terms(listener.settings)
            coming.append(_Coming(listener, settings, policies[index], files, clients_go))
        return lambda: self._change(coming, gone, fresh, policies)

    def _policies(self, new: Configuration, fresh: list[AccessPolicy]) -> list[AccessPolicy]:
        """Return the policy of each listener: the one of its clients, if it can stay.

        If listeners had a common policy and now have several, it stays with those whose file is
        unchanged.
        """
        known = {each.settings.name: each for each in self._listeners}
        found: list[tuple[bool, AccessPolicy, AccessPolicy]] = []
        for settings, policy in zip(new.listeners, fresh, strict=True):
            listener = known.get(settings.name)
            if listener is not None:
                changed = listener.settings.acl_file != settings.acl_file
                found.append((changed, policy, listener.connections.access))
        reused: dict[AccessPolicy, AccessPolicy] = {}
        for _, policy, before in sorted(found, key=lambda each: each[0]):
            if (
                policy not in reused
                and before not in reused.values()
                and policy.mount_point == before.mount_point  # its clients must connect again
            ):
                reused[policy] = before
        return [reused.get(policy, policy) for policy in fresh]

    async def _change(
        self,
        coming: list[_Coming],
        gone: list[Listener],
        fresh: list[AccessPolicy],
        policies: list[AccessPolicy],
    ) -> None:
        core = self._maker.core
        core.turn.now()  # its end sends what is queued now
        for new, policy in zip(fresh, policies, strict=True):
            if policy is not new:
                policy.become(new)
        for each in coming:
            await self._settle(each)
        self._listeners[:] = [each.listener for each in coming]
        core.policies[:] = policies
        core.broker.listeners = Listeners(rights_of(self._listeners), rights_of(self._sockets))
        leaving = [each.listener for each in coming if each.clients_go]
        names = {each.settings.name for each in (*leaving, *gone)}
        now = core.turn.now().monotonic
        await between_turns(access.apply(core.broker, core.policies, now))
        await between_turns(access.move(core.broker, names))
        for listener in gone:
            listener.release()
        await self._limit()
        if leaving or gone:
            task = asyncio.get_running_loop().create_task(self._see_off(leaving, gone, names))
            self._farewells.add(task)
            task.add_done_callback(self._farewells.discard)

    async def _settle(self, each: _Coming) -> None:
        """Apply a listener's settings, policy, certificate and users."""
        listener, settings, files = each.listener, each.settings, each.files
        users, had_users = files.passwords, listener.settings.password_file is not None
        if users is not None and had_users:
            await between_turns(listener.connections.replace_users(users))
            decides = listener.connections.authenticator
            listener.connections.logins.anonymous = bool(settings.allow_anonymous)
        else:
            decides = authenticator(self._maker.passwords, settings, users)
        listener.change(settings, decides, files.tls, each.policy)

    async def _see_off(
        self, leaving: list[Listener], gone: list[Listener], names: set[str]
    ) -> None:
        """Disconnect clients that connected under other terms, a moment later."""
        clients = [client for each in leaving for client in each.connections.clients]
        await asyncio.sleep(FAREWELL_SECONDS)
        core = self._maker.core
        core.turn.now()
        for client in clients:
            client.disconnect(ReasonCode.ADMINISTRATIVE_ACTION, CHANGED)
        for listener in gone:
            await listener.close(ReasonCode.ADMINISTRATIVE_ACTION, GONE)
        await between_turns(access.move(core.broker, names))

    async def _limit(self) -> None:
        """Apply limits of `[broker]` at all listeners, and at the socket for operators."""
        broker = self._maker.core.broker.settings
        for each in (*self._listeners, *self._sockets):
            own = each.settings.maximum_packet_size
            each.stack.maximum_packet_size = own or broker.maximum_packet_size
            each.stack.connect_timeout = broker.connect_timeout


def _terms(settings: ListenerSettings) -> tuple[object, ...]:
    """Return the terms of a connection: if they change, clients must reconnect."""
    return (
        settings.websocket,
        settings.proxy_protocol,
        settings.mount_point,
        settings.tls_certificate is None,
        settings.client_ca,
        settings.tls_identity,
        settings.password_file is None,
        settings.allow_anonymous,
    )


async def _bind(listener: Listener, gone: list[Listener], stack: AsyncExitStack) -> None:
    """Bind and serve an address, first releasing it from removed listeners that have it."""
    for each in gone:
        if overlaps(each.settings, listener.settings):
            each.release()
            stack.push_async_callback(_bind_again, each)
    stack.push_async_callback(listener.close)
    await listener.bind()
    await listener.serve()


async def _bind_again(listener: Listener) -> None:
    await listener.bind()
    await listener.serve()
