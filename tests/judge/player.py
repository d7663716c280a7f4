"""A client of the broker: what it is, what it holds, and how it answers."""

from dataclasses import dataclass

from gateway.session.inflight import MAXIMUM_BYTES
from tests.conformance.support import wire
from tests.judge.driver import Link
from tests.judge.messages import Copy, Message, encode
from tests.judge.rights import ANYBODY, Login

ALIASES = 16
"""Topic aliases that a client sets at most, as the broker's default allows."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a client says of itself in each of its CONNECTs; 0 stands for nothing said."""

    name: str
    version: int = wire.MQTT_5
    expiry: int = 0
    receive_maximum: int = 0
    alias_maximum: int = 0
    maximum_packet_size: int = 0
    one_by_one: bool = False  # whether each answer is a read of its own
    login: Login = ANYBODY

    def connect(self, clean: bool, will: wire.Will | None, user: str | None = None) -> bytes:
        properties = b""
        if self.version == wire.MQTT_5:
            if self.expiry:
                properties += wire.session_expiry(self.expiry)
            if self.receive_maximum:
                properties += wire.two_property(wire.RECEIVE_MAXIMUM, self.receive_maximum)
            if self.alias_maximum:
                properties += wire.two_property(wire.TOPIC_ALIAS_MAXIMUM, self.alias_maximum)
            if self.maximum_packet_size:
                size = self.maximum_packet_size
                properties += wire.four_property(wire.MAXIMUM_PACKET_SIZE, size)
        return wire.connect(
            self.version, self.name, clean=clean, properties=properties, will=will, username=user
        )

    def keeps(self, clean: bool) -> float:
        """Return the seconds that the session outlives a connection that begins so."""
        if self.version == wire.MQTT_5:
            return self.expiry
        return 0 if clean else float("inf")


@dataclass(slots=True)
class Outgoing:
    """A message of QoS 1 or 2 whose exchange is not over; `released` once its PUBREC came.

    It is `taken` where the broker has it, but the answer was lost.
    """

    message: Message
    released: bool = False
    taken: bool = False


class Player:
    """One client, with or without a connection; it remembers its session."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.name = profile.name
        self.version = profile.version
        self.link: Link | None = None
        self.answers = True
        self.releases = True  # answers PUBREC
        self.held: dict[int, Copy] = {}  # received, by packet identifier, and not acknowledged
        self.released: dict[int, Copy] = {}  # of QoS 2: PUBREC was sent, PUBCOMP was not
        self.again: list[Copy] = []  # may come once more, since the broker has crashed
        self._acknowledged: list[Copy] = []  # since it crashed last
        self.outgoing: dict[int, Outgoing] = {}
        self.stale = False  # reads what was sent some time ago
        self.unmarked = False  # what comes again may do so without DUP
        self.uncertain = False  # what it was sent a broker that has crashed can only guess
        self.unseen = False  # was sent more than it has read when the connection ended
        self._packet_id = 0
        self._begin()

    def _begin(self) -> None:
        self.awaited: list[bytes] = []  # SUBACK and UNSUBACK, to be read when it reads again
        self.open: dict[int, int] = {}  # bytes sent on this connection and not acknowledged
        self.due: list[tuple[int, int]] = []  # answers: first byte, packet identifier
        self.aliases: dict[int, str] = {}  # that the broker set
        self._set: dict[int, str] = {}  # that this client set
        self._to_release: list[int] = []

    @property
    def reads(self) -> bool:
        return self.link is not None and self.link.reads

    def read(self, *, reads: bool) -> None:
        """Read from now on, or leave what comes where it is."""
        assert self.link is not None
        self.link.reads = reads
        self.stale = self.stale or not reads

    @property
    def idle(self) -> bool:
        """Whether everything that it is sent is read and answered at once."""
        return self.reads and self.answers

    def begin(self, link: Link, present: bool) -> None:
        """Go on with a new connection, and with the session if it is `present`."""
        self._forget_channels()
        self._begin()
        self.link = link
        self.answers = self.releases = True
        self.stale = False
        if not present:
            self.forget()

    def forget(self) -> None:
        """Forget the session."""
        self.held.clear()
        self.released.clear()
        self.again.clear()
        self._acknowledged.clear()
        self.outgoing.clear()

    def lose(self) -> None:
        """Note that the connection is gone."""
        self.unseen = self.stale
        self._forget_channels()
        self._begin()
        self.link = None

    def _forget_channels(self) -> None:
        """Forget what channels gave, which they take back with each connection."""
        self.held = {number: copy for number, copy in self.held.items() if not copy.of_channel}

    def crashed(self) -> None:
        """Note that the broker may have forgotten what it heard last, but for QoS 2.

        Of a window that is full by its bytes it takes the last messages for not sent.
        """
        self.unmarked = self.unmarked or sum(self.open.values()) > MAXIMUM_BYTES // 4
        self.lose()
        self.again += [copy for copy in self.held.values() if copy.qos == 1]
        self.again += self._acknowledged
        self._acknowledged = []
        self.held = {number: copy for number, copy in self.held.items() if copy.qos == 2}
        self.held |= self.released  # PUBREC may be forgotten; then PUBLISH comes again
        self.released = {}
        self.uncertain = True

    def publish(self, message: Message, alias: int) -> bytes:
        """Return the PUBLISH of a message, with a topic alias if that is above 0."""
        packet_id = self._next() if message.qos else 0
        if packet_id:
            self.outgoing[packet_id] = Outgoing(message)
        aliased = alias > 0 and self.version == wire.MQTT_5
        known = aliased and self._set.get(alias) == message.topic
        if aliased:
            self._set[alias] = message.topic
        topic = "" if known else message.topic
        return self._packet(message, packet_id, topic, alias * aliased)

    def _packet(
        self, message: Message, packet_id: int, topic: str, alias: int = 0, *, dup: bool = False
    ) -> bytes:
        properties = [*message.properties]
        if alias:
            properties.append((wire.TOPIC_ALIAS, alias))
        if message.interval is not None:
            properties.append((wire.MESSAGE_EXPIRY_INTERVAL, message.interval))
        return wire.publish(
            self.version,
            topic,
            message.payload,
            message.qos,
            packet_id,
            retain=message.retain,
            dup=dup,
            properties=encode(properties) if self.version == wire.MQTT_5 else b"",
        )

    def _next(self) -> int:
        """Return a packet identifier, the lowest or the next of those that are free."""
        packet_id = 0 if self.profile.one_by_one else self._packet_id
        while True:
            packet_id = packet_id % 65_535 + 1
            if packet_id not in self.outgoing:
                self._packet_id = packet_id
                return packet_id

    def heard(self, kind: int, packet_id: int, code: int) -> Message | None:
        """Take an answer to a PUBLISH; return its message with the first, None with others."""
        outgoing = self.outgoing.get(packet_id)
        assert outgoing is not None, f"{self.name}: an answer for {packet_id}, which is not open"
        qos, first = outgoing.message.qos, not outgoing.released
        if kind == wire.PUBACK:
            assert qos == 1, f"{self.name}: PUBACK for {packet_id} of QoS 2"
        elif kind == wire.PUBREC:
            assert qos == 2, f"{self.name}: PUBREC for {packet_id} of QoS 1"
            if code < 0x80:
                outgoing.released = True
                if self.releases:
                    self.due.append((wire.PUBREL, packet_id))
                else:
                    self._to_release.append(packet_id)
                return outgoing.message if first else None
        else:
            assert outgoing.released, f"{self.name}: PUBCOMP for {packet_id} before its PUBREC"
        del self.outgoing[packet_id]
        return outgoing.message if first else None

    @property
    def unanswered(self) -> list[Outgoing]:
        """What it publishes again on a new connection."""
        return [each for each in self.outgoing.values() if not each.released]

    def release(self) -> None:
        """Answer PUBREC from now on, and those that came."""
        self.releases = True
        self.due += [(wire.PUBREL, packet_id) for packet_id in self._to_release]
        self._to_release.clear()

    def begin_again(self) -> bytes:
        """Return what a client sends again on a new connection, in its order."""
        return b"".join(
            wire.acknowledgement(wire.PUBREL, packet_id)
            if outgoing.released
            else self._packet(outgoing.message, packet_id, outgoing.message.topic, dup=True)
            for packet_id, outgoing in self.outgoing.items()
        )

    def answer(self, most: int, code: int = 0) -> list[bytes]:
        """Return at most so many of the answers that are due, and note that they are given.

        With a `code` of 0x80 or above messages are refused, which ends their exchange.
        """
        says = code > 0 and self.version == wire.MQTT_5
        refuses = says and code >= 0x80
        now, self.due = self.due[:most], self.due[most:]
        for first_byte, packet_id in now:
            if first_byte == wire.PUBACK:
                copy = self.held.pop(packet_id)
                copy.done = True
                self._acknowledged.append(copy)
                self.open.pop(packet_id, None)
            elif first_byte == wire.PUBREC and refuses:
                self.held.pop(packet_id).done = True
                self.open.pop(packet_id, None)
            elif first_byte == wire.PUBREC:
                self.released[packet_id] = copy = self.held.pop(packet_id)
                copy.done = True
            elif first_byte == wire.PUBCOMP:
                self.released.pop(packet_id, None)
                self.open.pop(packet_id, None)
        return [
            wire.acknowledgement(
                first_byte,
                packet_id,
                code if says and first_byte in (wire.PUBACK, wire.PUBREC) else None,
            )
            for first_byte, packet_id in now
        ]
