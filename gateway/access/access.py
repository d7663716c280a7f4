"""The rights to read and write of a listener's clients."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from gateway.access.acl_file import AclRules
from gateway.access.rule import NAMES, READ, WRITE, Rule, covers, overlaps, rights
from gateway.access.topics import (
    DELAY,
    OWN_MESSAGES,
    is_guarded,
    may_publish,
    mount_prefix,
    undelayed,
)
from gateway.mqtt.topics import topic_matches


class Patterns:
    """Patterns, and the result for the last topic.

    A message may be for thousands of clients, each with rights of its own: the part that is the
    same for all of them is computed once. `found` are the patterns that match the topic for some
    client; `granted` is the sum of their rights, None if that depends on the client.
    """

    __slots__ = ("_rules", "_topic", "found", "granted")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = [(rule, _widest(rule.topic_filter)) for rule in rules]
        self._topic: str | None = None
        self.found: list[Rule] = []
        self.granted: int | None = 0

    def __len__(self) -> int:
        return len(self._rules)

    def all(self) -> list[Rule]:
        """Return all of them."""
        return [rule for rule, _ in self._rules]

    def match(self, topic: str) -> None:
        """Find the patterns for a topic."""
        if topic == self._topic:
            return
        self._topic = topic
        self.found = [
            rule for rule, widest in self._rules if not widest or topic_matches(widest, topic)
        ]
        named = any(NAMES.search(rule.topic_filter) for rule in self.found)
        self.granted = None if named else rights(self.found, topic)[0]


NO_PATTERNS = Patterns(())


def _widest(topic_filter: str) -> str:
    """Return a topic filter that matches all that the pattern may match, "" if that is any topic.

    A name may contain a `/`.
    """
    name = NAMES.search(topic_filter)
    if name is None:
        return topic_filter
    parents, _, _ = topic_filter[: name.start()].rpartition("/")
    return f"{parents}/#" if parents else ""


ALL = READ | WRITE

CACHED_PATTERNS = 16
"""Patterns that are stored with a client's names filled in, 250 bytes each; more are filled in for
each topic again."""


RULES_A_WEIGHT = 8
"""Rules of one user that take as long as everything else, some 2 microseconds."""


class Access:
    """The rights of a client under a policy, as they were when the policy was queried.

    `restricted` is False if all topics are open that are not guarded. `weight` is the cost of
    evaluating an uncached topic, in some microseconds. With a `prefix`, its mount point, the client
    has rights only on the topics behind it.
    """

    __slots__ = (
        "__weakref__",
        "_client_id",
        "_named_patterns",
        "_own",
        "_patterns",
        "_ruled",
        "_username",
        "local",
        "policy",
        "prefix",
        "proven",
        "restricted",
        "weight",
    )

    def __init__(
        self,
        policy: "AccessPolicy",
        username: str | None,
        client_id: str,
        *,
        local: bool,
        proven: bool,
    ) -> None:
        self.policy = policy
        self.local = local
        self.proven = proven
        self.restricted = policy.restricted
        self._ruled = policy.ruled
        self.prefix = mount_prefix(policy.mount_point, username, client_id)
        self._username = username
        self._client_id = client_id
        self._patterns = policy.patterns
        own = policy.rules_of(username)
        self._own = self._named(own) if any(rule.pattern for rule in own) else own
        self.weight = 1 + len(own) // RULES_A_WEIGHT
        if self._has_wildcard:
            self._patterns = NO_PATTERNS  # as in Mosquitto: it would match other clients' topics
        self._named_patterns: list[Rule] | None = None

    def rights(self, topic: str) -> int:
        """Return the sum of READ and WRITE that the client has on a topic.

        Rules that name the user come first: patterns can neither remove what they grant nor grant
        what they deny.
        """
        if topic.startswith(DELAY):
            later = undelayed(topic)
            return 0 if later.startswith("$") else self.rights(later) & WRITE
        if self.prefix and not (topic.startswith(self.prefix) and topic != self.prefix):
            return WRITE if OWN_MESSAGES.fullmatch(topic) else 0
        dollar = topic.startswith("$")
        if dollar and is_guarded(topic):
            granted = self._guarded_rights(topic)
            if OWN_MESSAGES.fullmatch(topic):
                granted |= WRITE
        elif self._ruled:
            granted, denied = rights(self._own, topic) if self._own else (0, False)
            if granted != ALL and not denied:
                granted |= self._rights_of_patterns(topic)
        else:
            granted = ALL
        return granted & READ if dollar and not may_publish(topic) else granted

    def may_subscribe(self, topic_filter: str) -> bool:
        """Return whether the client may read some topic that the topic filter matches.

        The topic filter is not shared. If filters are not enough to decide, the answer is True:
        each message is checked in any case.
        """
        if "+" not in topic_filter and "#" not in topic_filter:
            return bool(self.rights(topic_filter) & READ)
        if not topic_filter.startswith(self.prefix):
            return False
        guarded = is_guarded(topic_filter)
        if self._commands if guarded else not self._ruled:
            return True
        rules = self._own if not guarded or self._trusted else ()
        if any(not rule.grants and covers(rule.topic_filter, topic_filter) for rule in rules):
            return False
        if not guarded:
            rules = [*rules, *self._of_patterns()]
        readable = [rule.topic_filter for rule in rules if rule.grants & READ]
        return any(overlaps(each, topic_filter) for each in readable)

    def explain(self, topic: str) -> list[str]:
        """Return where the rules that match a topic are written, in order of precedence.

        Nothing if there are none, and only the default rights apply.
        """
        topic = undelayed(topic)
        guarded = is_guarded(topic)
        own = self._own if not guarded or self._trusted else ()
        patterns = [] if guarded else self._of_patterns()
        return [
            rule.origin
            for rules in (own, patterns)
            for rule in sorted(rules, key=lambda rule: rule.grants > 0)
            if any(rights([rule], topic))
        ]

    def _guarded_rights(self, topic: str) -> int:
        """Return the rights on a guarded topic, which no pattern or unproven name gives."""
        granted, denied = rights(self._own, topic) if self._trusted else (0, False)
        return 0 if denied else ALL if self._commands else granted

    def _rights_of_patterns(self, topic: str) -> int:
        patterns = self._patterns
        patterns.match(topic)
        if patterns.granted is not None:
            return patterns.granted
        few = len(patterns) <= CACHED_PATTERNS
        return rights(self._of_patterns() if few else self._named(patterns.found), topic)[0]

    @property
    def _trusted(self) -> bool:
        """Whether the client's identity is certain enough for guarded topics."""
        return self.local or (self.proven and self._username is not None)

    @property
    def _commands(self) -> bool:
        """Whether guarded topics are open without a rule."""
        operator = self._trusted and self._username in self.policy.operators
        return operator or (self.local and not self._ruled)

    @property
    def _has_wildcard(self) -> bool:
        """Whether one of the client's names contains a wildcard."""
        names = self._client_id + (self._username or "")
        return "+" in names or "#" in names

    def _of_patterns(self) -> list[Rule]:
        """Return the patterns with the client's names filled in."""
        if self._named_patterns is not None:
            return self._named_patterns
        named = self._named(self._patterns.all())
        if len(named) <= CACHED_PATTERNS:
            self._named_patterns = named
        return named

    def _named(self, rules: Sequence[Rule]) -> list[Rule]:
        """Return the rules with the client's names filled in, if that is safe."""
        found = [(rule, rule.named(self._client_id, self._username)) for rule in rules]
        return [
            named
            for rule, named in found
            if named is not None and (named is rule or not self._has_wildcard)
        ]


class Role(NamedTuple):
    """Rules for clients whose user name is in `names`, and for those without one if `anonymous`."""

    names: Callable[[str], bool]
    anonymous: bool
    rules: tuple[Rule, ...]


def rules_of(roles: Iterable[Role], username: str | None) -> list[Rule]:
    """Return the rules of all roles of a client with this user name."""
    return [
        rule
        for role in roles
        if (role.anonymous if username is None else role.names(username))
        for rule in role.rules
    ]


class AccessPolicy:
    """The access rules of a listener, which can be replaced while clients are connected.

    `ruled` is whether there are any. Without rules clients may do everything, except for guarded
    topics, which are for clients of this machine and for `operators`. A `mount_point` bounds them
    to the topics behind it, so that they are `restricted` in any case.
    """

    def __init__(
        self,
        acl: AclRules | None = None,
        roles: Sequence[Role] = (),
        operators: Sequence[str] = (),
        mount_point: str = "",
    ) -> None:
        self.roles = tuple(roles)
        self.operators = frozenset(operators)
        self.mount_point = mount_point
        self.replace(acl)

    def become(self, other: "AccessPolicy") -> None:
        """Use another policy's rules for every access that is created from now on."""
        self.roles, self.operators = other.roles, other.operators
        self.mount_point = other.mount_point
        self.replace(other.acl)

    def replace(self, acl: AclRules | None) -> None:
        """Use the rules of this file for every access that is created from now on."""
        self.acl = acl
        self.ruled = acl is not None or bool(self.roles)
        self.restricted = self.ruled or bool(self.mount_point)
        self._users = {} if acl is None else acl.users
        patterns = [] if acl is None else acl.patterns
        self.patterns = Patterns(patterns)
        named = [*patterns, *(rule for role in self.roles for rule in role.rules)]
        filters = [self.mount_point, *(rule.topic_filter for rule in named)]
        self._names_clients = any("%c" in each for each in filters)
        self._names_users = self.ruled or "%u" in self.mount_point
        self._known: WeakValueDictionary[object, Access] = WeakValueDictionary()

    def access(self, username: str | None, client_id: str, *, local: bool, proven: bool) -> Access:
        """Return a client's rights, the same object for all whom the rules do not distinguish.

        `local` is a client of this machine; the user name is `proven` by a password or a
        certificate.
        """
        if not self._names_users and username not in self.operators:
            username = None
        if not self._names_clients and "+" not in client_id and "#" not in client_id:
            client_id = ""
        key = (username, client_id, local, proven)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Access(self, username, client_id, local=local, proven=proven)
        return known

    def rules_of(self, username: str | None) -> Sequence[Rule]:
        """Return the rules that name the user, or those for clients without a user name."""
        own = self._users.get(username, [])
        of_roles = rules_of(self.roles, username)
        return [*own, *of_roles] if of_roles else own


OPEN = AccessPolicy()
"""No rules at all."""

EVERYTHING = OPEN.access(None, "", local=True, proven=True)
"""The rights of a part of the gateway."""
