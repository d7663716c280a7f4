"""One client's network connection: between the socket and the broker's client."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from enum import Enum

from gateway.broker.client import HELD, Client
from gateway.broker.connecting.connection_info import PLAIN, Authenticator, ConnectionInfo
from gateway.broker.instant import Instant
from gateway.mqtt.output import Output
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.turn import Turn

CREDENTIALS = struct.Struct("iII")  # struct ucred: process, user and group (unix(7))


def peer_name(transport: asyncio.BaseTransport) -> str:
    """Return address and port, or the peer process of a Unix socket."""
    address = transport.get_extra_info("peername")
    if isinstance(address, tuple):  # nearly always; querying the socket's family costs more
        return address_name(address)
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family == socket.AF_UNIX:
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        process, user, _ = CREDENTIALS.unpack(raw)
        return f"process {process} of user {user}"
    return address_name(address)


def is_local(transport: asyncio.BaseTransport) -> bool:
    """Return whether the peer is on this machine: on loopback or at a Unix socket."""
    address = transport.get_extra_info("peername")
    if isinstance(address, tuple):
        host = str(address[0])
        return host.startswith(("127.", "::ffff:127.")) or host == "::1"
    sock = transport.get_extra_info("socket")
    return sock is not None and sock.family == socket.AF_UNIX


def address_name(address: object) -> str:
    """Return `host:port`, with brackets around the host of IPv6."""
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = address[0], address[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return str(address or "unknown")


logger = logging.getLogger(__name__)

CLOSE_TIMEOUT = 5.0
"""Seconds that a peer has at the end of a connection to read its output and to close."""

HANDLING = 0.0025
"""Seconds for which packets of one client are handled before other clients are served."""

NOTED = 64 * 1024
"""Bytes of inflight messages above which a connection that holds nothing else is counted."""

NOTED_OUTPUT = 1024
"""Bytes of output above which it is counted: the connection itself has more, and short-lived
output, such as the answers of a turn, would be counted twice in each turn."""

# Compiled, these are C names.
_NOTED = NOTED
_NOTED_OUTPUT = NOTED_OUTPUT

MISTAKE = "unexpected error; closing client at %s"


class Progress(Enum):
    """How far a connection is on its way to a session."""

    SILENT = "silent"  # no complete CONNECT was received
    WAITING = "waiting"  # its password is being checked
    ACCEPTED = "accepted"


class ClientTransport:
    """Transfers bytes between a socket and the broker; writes at the end of a turn.

    It has the methods of `asyncio.Protocol` but is no subclass, which could not be compiled.
    """

    __slots__ = (
        "_abort",
        "_authenticator",
        "_below",
        "_client",
        "_finished",
        "_held",
        "_held_back",
        "_info",
        "_on_lost",
        "_paused",
        "_rest",
        "_transport",
        "_turn",
        "_unhandled",
        "active",
    )

    def __init__(
        self,
        turn: Turn,
        authenticator: Authenticator,
        info: Callable[[asyncio.BaseTransport], ConnectionInfo] = lambda _: PLAIN,
        on_lost: Callable[["ClientTransport"], None] = lambda _: None,
    ) -> None:
        self._turn = turn
        self._authenticator = authenticator
        self._info = info
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._client: Client | None = None
        self._below = 0  # received bytes that a WebSocket holds
        self._paused = False  # the peer reads too slowly
        self.active = False
        self._held = False  # nothing is handled until the client is authenticated
        self._held_back = False  # the peer reads no answers: its packets stay in the socket
        self._rest = False  # packets wait until other clients were served
        self._unhandled = b""  # received bytes that wait for that
        self._finished = False  # everything is written, and nothing will follow
        self._abort: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Create the connection's broker client."""
        self._transport = transport
        # no more output while the kernel has not accepted the last: it is bounded and counted here
        self._transport.set_write_buffer_limits(high=0)
        self._client = self._turn.broker.open(
            self._authenticator,
            peer_name(transport),
            self,  # a bound method would be another 80 bytes
            self._turn.now(),
            self._info(transport),
        )

    def data_received(self, data: bytes) -> None:
        """Let the broker handle received bytes for HANDLING seconds, and the rest later."""
        client = self._client
        if client is None or client.closing:
            return
        turn = self._turn
        self.active = True
        if client.connection.touched:  # by a message, before its peer sent something
            turn.touch(self)
        turn.client = client  # for the report, if this turn is a long one
        unknown = client.session is None
        try:
            # the turn's time is used up, and a CONNECT may take over an expensive session
            if unknown and turn.overrun:
                self._unhandled = data
                self._wait_for_others()
            else:
                turns = turn.broker.traffic.turns
                instant = turn.now()
                if turn.broker.receive(client, data, instant):
                    self._receive_rest(client, instant, turns)
        except Exception:
            # one of the three borders (ARCHITECTURE.md): a fault of ours ends only this connection
            logger.exception(MISTAKE, client.peer)
            self._turn.broker.counters.add("tidegate/clients/errors")
            client.disconnect(ReasonCode.UNSPECIFIED_ERROR)
        if unknown:
            if client.session is not None:
                turn.write_early(self)  # other clients are served while it reads CONNACK
            self._check_time()
        connection, transport = client.connection, self._transport
        if client.held or connection.framer.buffer or self._unhandled:
            self._note_held(client)
        self._held = client.pieces is HELD
        # answers must not pile up
        unread = connection.answers >= connection.maximum_unsent
        if (unread or self._rest or self._held) and transport is not None:
            self._held_back = True
            transport.pause_reading()

    def _receive_rest(self, client: Client, began: Instant, turns: int) -> None:
        """Have the broker handle what is in the framer, for HANDLING seconds since it `began`.

        `turns` is the number of turns then.
        """
        turn, traffic = self._turn, self._turn.broker.traffic
        more = True
        while more:
            late = turn.monotonic() >= began.monotonic + HANDLING
            if late or traffic.turns != turns:  # there is enough output to write
                turn.end()
                turns = traffic.turns
            if late or traffic.unfinished:
                self._wait_for_others()
                return
            more = turn.broker.receive(client, b"", turn.now())

    def _wait_for_others(self) -> None:
        """Continue after other clients were served."""
        self._rest = True
        self._turn.later(self._go_on)

    def _go_on(self) -> None:
        """Handle more of what was received, even if the connection has ended meanwhile."""
        self._rest = False
        if self._client is not None:
            data, self._unhandled = self._unhandled, b""
            self.data_received(data)
        if self._transport is None:
            self._end()
        else:
            self()  # if nothing is left, reading is resumed

    def eof_received(self) -> bool:
        """Let the transport close itself, after the peer has read its output."""
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size():
            self._expire(transport)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """End the client; `error` is None after an orderly end."""
        if self._client is not None and error is not None:
            self._client.end_reason = self._client.end_reason or _words(error)
        self._transport = None
        self._turn.flushes.discard(self)
        if self._abort is not None:
            self._abort.cancel()
        self._end()

    def _end(self) -> None:
        """End the broker's client, once all received packets are handled.

        If the turn's time is used up, or other sockets are ready, that is done later: thousands of
        connections may be lost in one moment.
        """
        # `_go_on` calls this again
        if self._rest:
            return
        if self._turn.busy:
            self._turn.later(self._end_now)
        else:
            self._end_now()

    def _end_now(self) -> None:
        try:
            self._disconnected()
        except Exception:  # the same border
            logger.exception("unexpected error when a client disconnected")
            self._turn.broker.counters.add("tidegate/clients/errors")
        self._on_lost(self)
        self._check_time()

    def _check_time(self) -> None:
        """Postpone what is not urgent, if the turn's time is used up."""
        turn = self._turn
        if turn.monotonic() >= turn.now().monotonic + HANDLING:
            turn.overrun = True

    def pause_writing(self) -> None:
        """Note that the peer reads too slowly."""
        self._paused = True

    def resume_writing(self) -> None:
        """Note that more can be written."""
        self._paused = False
        if self._client is not None:
            self()

    def flush(self, committed: int, now: Instant) -> int:
        """Write what may be sent; return the batch that the rest waits for, 0 if none."""
        # not split: each write of each connection comes here
        client, transport = self._client, self._transport
        if client is None or transport is None or self._finished:
            return 0
        connection, session, monotonic = client.connection, client.session, now.monotonic
        self.active = False
        try:
            # written messages make space for queued ones, until the kernel's buffer is full
            while not self._paused:
                buffered = connection.output.buffered
                data = connection.data_to_send(committed, monotonic)
                if data is not None:
                    size = len(data)
                    self._turn.broker.traffic.network_sent += size
                    transport.write(data)
                    if session is not None:
                        delivery = session.delivery
                        delivery.flushes += 1  # without another call for each write
                        delivery.bytes += size
                        if buffered is not None:
                            delivery.note_delays(buffered.arrivals, monotonic)
                            self._turn.flushes.discard(self)
                elif buffered is not None:
                    self._flush_later(connection.output, monotonic)
                if (
                    session is None
                    or session.connection is not connection
                    or not (
                        session.queue.messages  # waits for the capacity that is free now
                        or (
                            data is not None
                            and (session.inflight.resend or session.on_capacity or session.consumes)
                        )
                    )
                ):
                    break
                session.pump(monotonic)
                if not connection.touched:  # the window is full, or nothing may be sent yet
                    break
            output = connection.output.size
            if (
                client.held
                or output >= _NOTED_OUTPUT
                or (session is not None and session.inflight.held >= _NOTED)
                or self._paused
            ):
                self._note_held(client)
            if output or client.closing or self._held_back:
                batch = self._see_to(client, transport)
                return batch if batch > committed else 0  # a delivery policy holds it then
        except Exception:  # the same border
            logger.exception(MISTAKE, client.peer)
            self._turn.broker.counters.add("tidegate/clients/errors")
            transport.abort()
        return 0

    def _flush_later(self, output: Output, now: float) -> None:
        """Have held messages written in time, or now if too many connections hold some."""
        due = output.held_until(now)
        if due and not self._turn.flushes.add(self, due):
            output.release()
            self()

    def _see_to(self, client: Client, transport: asyncio.Transport) -> int:
        """After a write, close the connection, set a timeout, or resume reading, as needed."""
        if client.aborted:
            transport.abort()
            return 0
        connection = client.connection
        waits = connection.output.size > 0
        if self._held and (client.closing or client.pieces is not HELD):
            self._held = False
            if not client.closing:
                self._rest = True
                self._turn.loop.call_soon(self._go_on)  # continue with what followed CONNECT
        free = not self._held and not self._rest
        if self._held_back and free and (client.closing or not connection.unread):
            self._held_back = False
            transport.resume_reading()
        if client.closing:
            if not waits and self._may_close(client, transport):
                self._finished = True
                transport.close()
                return 0
            self._expire(transport)
            if not waits:
                self._finish(transport)
        # a paused peer is written to by `resume_writing`, not after a commit
        return connection.output.waiting_for if waits and not self._paused else 0

    def note_below(self, size: int) -> None:
        """Note how many received bytes a protocol between this and the socket holds."""
        self._below = size
        client = self._client
        if client is None or not (size or client.held):
            return
        if client.session is None and size > self._turn.broker.settings.maximum_connect_size:
            client.abort("a frame that is too large before CONNECT")
        self._note_held(client)

    def _note_held(self, client: Client) -> None:
        """Report to the memory budget what this connection holds."""
        unwritten = 0 if self._transport is None else self._transport.get_write_buffer_size()
        below = unwritten * 5 // 4 + self._below + len(self._unhandled)
        self._turn.broker.memory.note(client, below)

    def abort(self) -> None:
        """Close the socket now and drop unsent output."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def connected(self) -> bool:
        """True from the connection's beginning until its end is handled."""
        return self._transport is not None or self._client is not None

    @property
    def unfinished(self) -> bool:
        """True while something must still be sent, or closed in an orderly way."""
        transport = self._transport
        return transport is not None and not (self._finished and transport.can_write_eof())

    @property
    def progress(self) -> Progress:
        """Its progress; an ended connection counts as silent."""
        client = self._client
        if client is None:
            return Progress.SILENT
        if client.session is not None:
            return Progress.ACCEPTED
        return Progress.WAITING if client.pieces is HELD else Progress.SILENT

    @property
    def peer(self) -> str:
        """The peer's name, "" before the connection has begun (after TLS) and after its end."""
        return "" if self._client is None else self._client.peer

    @property
    def client(self) -> Client | None:
        """The broker's client, None before the connection has begun and after its end."""
        return self._client

    @property
    def username(self) -> str | None:
        """The user name that the client logged in with, None without one."""
        session = None if self._client is None else self._client.session
        return None if session is None else session.username

    def disconnect(self, reason_code: ReasonCode, reason: str) -> None:
        """End the connection from our side."""
        if self._client is not None:
            self._client.disconnect(reason_code, reason)

    def __call__(self) -> None:
        """Do what `Turn.touch` does, without another call for each message."""
        turn, client = self._turn, self._client
        if client is not None and client.aborted:
            self.active = True  # written first: memory must be freed
        (turn.active if self.active else turn.late)[self] = None
        if not turn.scheduled:
            turn.schedule()

    @staticmethod
    def _may_close(client: Client, transport: asyncio.Transport) -> bool:
        """Return whether the socket may be closed: nothing is received, and all was written."""
        return (
            client.sent_disconnect
            and transport.can_write_eof()
            and not transport.get_write_buffer_size()
        )

    def _expire(self, transport: asyncio.Transport) -> None:
        """Limit the wait to CLOSE_TIMEOUT for a peer that reads nothing, or does not close."""
        if self._abort is None:
            self._abort = self._turn.loop.call_later(CLOSE_TIMEOUT, self._give_up, transport)

    def _give_up(self, transport: asyncio.Transport) -> None:
        self._turn.broker.counters.add("tidegate/connections/aborted")
        transport.abort()

    def _finish(self, transport: asyncio.Transport) -> None:
        """End the connection for the broker at once, and close our half of the socket.

        Closing a socket while its peer still sends would reset it, and the peer might not receive
        the reason. So the peer closes the other half.
        """
        self._finished = True
        self._turn.loop.call_soon(self._disconnected)
        if transport.can_write_eof() and not transport.get_write_buffer_size():
            try:
                transport.write_eof()
            except OSError:  # the peer closed first
                transport.abort()
        else:
            transport.close()

    def _disconnected(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            self._turn.broker.lost(client, self._turn.now())


def _words(error: Exception) -> str:
    """Return a text for the end of a connection, without Linux's error number."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
