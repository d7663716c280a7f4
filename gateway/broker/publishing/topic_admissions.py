"""Cache of recently published topics: who may publish to them, and who gets their messages."""

from functools import partial

from gateway.access.access import Access
from gateway.access.rule import WRITE
from gateway.access.topics import DELAY, DELAY_FAULT, delay_of, is_guarded, may_publish
from gateway.broker.client_classes import DurabilityClasses
from gateway.broker.publishing.topic_memory import Topic
from gateway.mqtt.codec.fields import to_text, write_string
from gateway.mqtt.errors import MqttError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import TopicLimits, check_topic_name
from gateway.routing.filters.selection import Rights
from gateway.routing.route import Match, Route, text_size
from gateway.routing.router import Router
from gateway.session.durability_class import DurabilityClass
from gateway.settings.broker import MAXIMUM_ROUTE_BYTES

LARGEST = 4
"""An admission larger than a fourth of the bound is not cached: it would evict all others."""

FREED = 32
"""The part of the bound that is freed at once: cheaper than one by one."""

ADMISSION_OVERHEAD = 320
"""Bytes of an admission beside its topic, twice, and its route: the object and its dictionary
entry."""


RIGHTS_OVERHEAD = 250
"""Bytes of one client's cached rights: a dictionary entry, and its growth."""


UNBOUNDED = 1 << 62

PEER_TO_PEER = "/p2p/"


class TopicAdmission:
    """One topic name: whether messages may be published to it, and where they go.

    `refusal` is the reason code of a topic that no client may publish to, with `fault` if the
    client gets a text, else None. A `guarded` topic is not for every client:
    `TopicAdmissions.rights` decides. `durability` is the configured class of the topic, None if it
    has none. `addressee` is the client identifier of a peer to peer topic; `delayed` messages wait
    for their moment. A `special` topic is one of these, or too many subscriptions match it. It is
    `common` if only rights and route decide who may publish and who receives. `writer` is the
    access that last proved the right to publish: most topics have one publisher. `remembered` is
    what is stored of the topic for queries, None if nothing is.
    """

    __slots__ = (
        "addressee",
        "common",
        "delayed",
        "durability",
        "epoch",
        "fault",
        "guarded",
        "refusal",
        "remembered",
        "rights",
        "route",
        "size",
        "special",
        "topic",
        "writer",
    )

    def __init__(self, topic: str, route: Route) -> None:
        self.topic = topic
        self.route = route
        self.refusal: ReasonCode | None = None
        self.fault = ""
        self.durability: DurabilityClass | None = None
        self.addressee: str | None = None
        self.delayed = False
        self.special = route.crowded
        self.guarded = False
        self.common = False
        self.epoch = 0  # the cache's epoch while this admission is in it
        self.rights: dict[Access, int] | None = None  # made for the first access that needs it
        self.writer: Access | None = None
        self.remembered: Topic | None = None
        self.size = ADMISSION_OVERHEAD + 2 * text_size(topic)

    def commit_within(self, of_client: DurabilityClass) -> float | None:
        """Return the seconds within which a message of a client of this class must be on disk."""
        of_topic = self.durability
        if of_topic is not None and of_topic.place < of_client.place:
            return of_topic.commit_within
        return of_client.commit_within


class TopicAdmissions:
    """Admissions by topic name, encoded with its length as in a PUBLISH; bounded in bytes.

    Those in use are in `_young`. When the cache is full, admissions of `_old` are evicted, unless a
    message uses them before and makes them young again; when `_old` is empty, the young become the
    old. `hits` and `misses` count messages whose admission was cached or had to be made,
    `decisions` how often access rules were evaluated. No message joins another once
    `Router.evaluations` is above `maximum_evaluations`.

    An admission is valid until a subscription of its route or an access rule changes. `joined` are
    the admissions of the topics for which `same_route` was true, unless None.
    """

    __slots__ = (
        "_bytes",
        "_durability_classes",
        "_epoch",
        "_limits",
        "_old",
        "_router",
        "_routes",
        "_young",
        "decisions",
        "hits",
        "joined",
        "maximum_bytes",
        "maximum_evaluations",
        "misses",
        "p2p",
    )

    def __init__(
        self,
        router: Router,
        limits: TopicLimits,
        durability_classes: DurabilityClasses,
        *,
        p2p: bool,
        maximum_bytes: int = MAXIMUM_ROUTE_BYTES,
    ) -> None:
        self._router = router
        self._limits = limits
        self._durability_classes = durability_classes
        self.p2p = p2p
        self.maximum_bytes = maximum_bytes
        self.hits = 0
        self.misses = 0
        self.decisions = 0
        self.joined: list[TopicAdmission] | None = None
        self.maximum_evaluations = UNBOUNDED
        self._young: dict[bytes, TopicAdmission] = {}
        self._old: dict[bytes, TopicAdmission] = {}
        self._routes: dict[Match, Route] = {}  # routes of cached admissions that new ones may share
        self._epoch = 1
        self._bytes = 0  # of admissions, and of each of their routes once
        router.on_change = self.forget

    @property
    def held_bytes(self) -> int:
        """About the bytes that the admissions and their routes occupy."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def values(self) -> dict[str, int]:
        """Return the figures under `$SYS/broker/tidegate/routes/`."""
        lookups = self.hits + self.misses
        return {
            "hits": self.hits,
            "misses": self.misses,
            "hit_rate": 100 * self.hits // lookups if lookups else 0,
            "topics": len(self),
            "decisions": self.decisions,
            "bytes": self._bytes,
        }

    def find(self, topic_name: bytes) -> TopicAdmission:
        """Return and count the admission of a message's topic.

        Raises MalformedPacket or ProtocolError for an invalid topic name.
        """
        admission = self._young.get(topic_name)
        if admission is not None:
            self.hits += 1
            return admission
        admission = self._old.pop(topic_name, None)
        if admission is not None:
            self.hits += 1
            self._young[topic_name] = admission
            return admission
        self.misses += 1
        admission = self._make(topic_name)
        self._store(topic_name, admission)
        return admission

    def find_again(self, topic_name: bytes) -> TopicAdmission:
        """Return the present admission of a topic that was counted before."""
        hits, misses = self.hits, self.misses
        admission = self.find(topic_name)
        self.hits, self.misses = hits, misses
        return admission

    def same_route(self, admission: TopicAdmission, access: Access, topic_name: bytes) -> bool:
        """Return whether this client's messages to another topic have the same route.

        That topic's admission is found and counted, as for a message.
        """
        other = self._young.get(topic_name)
        if other is None:
            if self._router.evaluations > self.maximum_evaluations:
                return False
            try:
                other = self.find(topic_name)
            except MqttError:  # raised again when that message is handled
                return False
        route = admission.route
        if other.route is not route:
            return False
        if route.selective and (
            self._router.restricted(admission.topic)
            or (not route.always and self._router.evaluates(route))
        ):
            return False  # no receiver gets the messages together
        if other.durability is not admission.durability or not (other.common and admission.common):
            return False
        if access.restricted and (other.writer is not access or admission.writer is not access):
            if self._router.evaluations > self.maximum_evaluations:
                return False
            if self.may_write(other, access) != self.may_write(admission, access):
                return False
        if self.joined is not None:
            self.joined.append(other)
        return True

    def may_write(self, admission: TopicAdmission, access: Access) -> bool:
        """Return whether an access gives the right to publish to an admission's topic."""
        if admission.writer is access:
            return True
        checked = admission.guarded or access.restricted
        if checked and not self.rights(admission, access) & WRITE:
            return False
        admission.writer = access
        return True

    def rights(self, admission: TopicAdmission, access: Access) -> int:
        """Return the rights that an access gives on an admission's topic; they are cached."""
        rights = admission.rights
        if rights is None:
            rights = admission.rights = {}
        known = rights.get(access)
        if known is None:
            self.decisions += 1
            self._router.evaluations += access.weight
            known = rights[access] = access.rights(admission.topic)
            admission.size += RIGHTS_OVERHEAD
            # otherwise the cache does not count it any more
            if admission.epoch == self._epoch:
                self._bytes += RIGHTS_OVERHEAD
                if self._bytes > self.maximum_bytes:
                    self._evict()
        return known

    def reader(self, admission: TopicAdmission) -> Rights | None:
        """Return a function that checks the rights of an access to read; None if all may."""
        if self._router.restricts or admission.topic.startswith("$"):
            return partial(self.rights, admission)
        return None

    def _make(self, topic_name: bytes) -> TopicAdmission:
        topic = read_topic(topic_name)
        match = self._router.match(topic)
        route = self._routes.get(match)
        admission = TopicAdmission(topic, self._router.route(match) if route is None else route)
        admission.fault = self._limits.fault(topic)
        if admission.fault:
            admission.refusal = ReasonCode.TOPIC_NAME_INVALID
        elif not may_publish(topic):
            admission.refusal = ReasonCode.NOT_AUTHORIZED
        elif topic.startswith(DELAY):
            admission.delayed = delay_of(topic) is not None
            if not admission.delayed:
                admission.refusal, admission.fault = ReasonCode.TOPIC_NAME_INVALID, DELAY_FAULT
        admission.guarded = is_guarded(topic)
        admission.durability = self._durability_classes.of_topic(topic)
        if self.p2p:
            admission.addressee = addressee_of(topic)
        if admission.delayed or admission.addressee is not None:
            admission.special = True
        ordinary = admission.refusal is None and admission.addressee is None
        admission.common = ordinary and not topic.startswith("$")
        return admission

    def _store(self, topic_name: bytes, admission: TopicAdmission) -> None:
        route, size = admission.route, admission.size
        if not route.topics:
            size += route.size
        if size > self.maximum_bytes // LARGEST:
            return
        # before evicting, which could remove the last admission of this route, and so the route
        route.topics += 1
        self._bytes += size
        if self._bytes > self.maximum_bytes:
            self._evict()
        admission.epoch = self._epoch
        self._routes[route.match] = route
        self._young[topic_name] = admission

    def _evict(self) -> None:
        target_bytes = self.maximum_bytes - self.maximum_bytes // FREED
        while self._bytes > target_bytes:
            if not self._old:
                self._old, self._young = self._young, {}
            _, admission = self._old.popitem()
            self._discard(admission)

    def _discard(self, admission: TopicAdmission) -> None:
        route = admission.route
        admission.epoch = 0
        route.topics -= 1
        self._bytes -= admission.size
        if not route.topics:
            self._bytes -= route.size
            self._routes.pop(route.match, None)

    def forget(self, topic_filter: str) -> None:
        """Forget every admission whose route a subscription with this topic filter belongs to.

        Without a wildcard that is one topic; with one, all admissions are forgotten.
        """
        # new admissions must not share a route that was made before the change
        self._routes = {}
        if "+" in topic_filter or "#" in topic_filter:
            self.forget_all()
            return
        self.forget_topic(write_string(topic_filter))

    def forget_topic(self, topic_name: bytes) -> None:
        """Forget the admission of a topic."""
        for known in (self._young, self._old):
            admission = known.pop(topic_name, None)
            if admission is not None:
                self._discard(admission)

    def forget_all(self) -> None:
        """Forget every admission and route."""
        # admissions still referenced elsewhere are recognised as not counted
        self._epoch += 1
        self._routes, self._young, self._old = {}, {}, {}
        self._bytes = 0


def addressee_of(topic: str) -> str | None:
    """Return the addressee of a peer to peer topic, None for any other topic.

    Such a topic is `{first level}/p2p/{client identifier}`. A client identifier with a `/` cannot
    be addressed, and topics that begin with `$` are not peer to peer.
    """
    if PEER_TO_PEER not in topic or topic.startswith("$"):
        return None
    levels = topic.split("/")
    return levels[2] if len(levels) == 3 else None


def read_topic(topic_name: bytes) -> str:
    """Return the topic of an encoded name; raise MqttError if it is invalid."""
    topic = to_text(topic_name[2:], "topic name")  # [MQTT-3.3.2-1]
    if "+" in topic or "#" in topic or not topic:  # [MQTT-3.3.2-2]
        check_topic_name(topic)
    return topic
