"""What the rules of a listener let its clients read and write."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from gateway.access.acl_file import AclRules
from gateway.access.rule import NAMES, READ, WRITE, Rule, covers, overlaps, rights
from gateway.access.topics import DELAY, is_guarded, may_publish, undelayed
from gateway.mqtt.topics import topic_matches


class Patterns:
    """Patterns, and what they say about the topic that was asked about last.

    A message may be for thousands of clients, each of which has rights of its own: what is the same
    for all of them is found once. `found` are the patterns that match the topic for some client;
    `granted` is the sum of rights that they give, None if that depends on the client.
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
        """Find what is to be said about a topic."""
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
    """Return a topic filter that matches what the pattern may match, "" if that may be any topic.

    A name may hold a `/`.
    """
    name = NAMES.search(topic_filter)
    if name is None:
        return topic_filter
    parents, _, _ = topic_filter[: name.start()].rpartition("/")
    return f"{parents}/#" if parents else ""


ALL = READ | WRITE

CACHED_PATTERNS = 16
"""Patterns that are kept with a client's names in their places, 250 bytes each; where there are
more, that is done anew for each topic."""


RULES_A_WEIGHT = 8
"""Rules of one user that take as long as all else, some 2 microseconds."""


class Access:
    """The rights of a client under a policy, as they were when the policy was asked.

    `restricted` is False if all topics are open that are not guarded. `weight` says how long it
    takes to ask about a topic that nobody has asked about, in some microseconds.
    """

    __slots__ = (
        "__weakref__",
        "_client_id",
        "_named_patterns",
        "_own",
        "_patterns",
        "_username",
        "local",
        "policy",
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
        self._username = username
        self._client_id = client_id
        self._patterns = policy.patterns
        own = policy.rules_of(username)
        self._own = self._named(own) if any(rule.pattern for rule in own) else own
        self.weight = 1 + len(own) // RULES_A_WEIGHT
        if self._has_wildcard:
            self._patterns = NO_PATTERNS  # as in Mosquitto: it would match what is others'
        self._named_patterns: list[Rule] | None = None

    def rights(self, topic: str) -> int:
        """Return the sum of READ and WRITE that the client has on a topic.

        The rules that name the user come first: what they grant no pattern takes away, and what
        they deny no pattern grants.
        """
        if topic.startswith(DELAY):
            later = undelayed(topic)
            return 0 if later.startswith("$") else self.rights(later) & WRITE
        dollar = topic.startswith("$")
        if dollar and is_guarded(topic):
            granted = self._guarded_rights(topic)
        elif self.restricted:
            granted, denied = rights(self._own, topic) if self._own else (0, False)
            if granted != ALL and not denied:
                granted |= self._rights_of_patterns(topic)
        else:
            granted = ALL
        return granted & READ if dollar and not may_publish(topic) else granted

    def may_subscribe(self, topic_filter: str) -> bool:
        """Return whether the client may read some topic that the topic filter matches.

        The topic filter is not shared. Where filters alone do not tell, the answer is True: each
        message is looked at all the same.
        """
        if "+" not in topic_filter and "#" not in topic_filter:
            return bool(self.rights(topic_filter) & READ)
        guarded = is_guarded(topic_filter)
        if self._commands if guarded else not self.restricted:
            return True
        rules = self._own if not guarded or self._trusted else ()
        if any(not rule.grants and covers(rule.topic_filter, topic_filter) for rule in rules):
            return False
        if not guarded:
            rules = [*rules, *self._of_patterns()]
        readable = [rule.topic_filter for rule in rules if rule.grants & READ]
        return any(overlaps(each, topic_filter) for each in readable)

    def explain(self, topic: str) -> list[str]:
        """Return where the rules are written that match a topic, in the order in which they count.

        Nothing if there are none, and what a client may do by itself is all.
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
        """Return the rights on a guarded topic, which nobody has by a pattern or a mere claim."""
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
        """Whether it is certain enough who the client is for guarded topics."""
        return self.local or (self.proven and self._username is not None)

    @property
    def _commands(self) -> bool:
        """Whether guarded topics are open without a rule."""
        operator = self._trusted and self._username in self.policy.operators
        return operator or (self.local and not self.restricted)

    @property
    def _has_wildcard(self) -> bool:
        """Whether one of the client's names would match more than itself."""
        names = self._client_id + (self._username or "")
        return "+" in names or "#" in names

    def _of_patterns(self) -> list[Rule]:
        """Return the patterns with the client's names in their places."""
        if self._named_patterns is not None:
            return self._named_patterns
        named = self._named(self._patterns.all())
        if len(named) <= CACHED_PATTERNS:
            self._named_patterns = named
        return named

    def _named(self, rules: Sequence[Rule]) -> list[Rule]:
        """Return the rules with the client's names in their places, as far as that is safe."""
        found = [(rule, rule.named(self._client_id, self._username)) for rule in rules]
        return [
            named
            for rule, named in found
            if named is not None and (named is rule or not self._has_wildcard)
        ]


class Role(NamedTuple):
    """Rules for the clients whose user name it `names`, and for those without if `anonymous`."""

    names: Callable[[str], bool]
    anonymous: bool
    rules: tuple[Rule, ...]


def rules_of(roles: Iterable[Role], username: str | None) -> list[Rule]:
    """Return the rules of all roles that a client with this user name has."""
    return [
        rule
        for role in roles
        if (role.anonymous if username is None else role.names(username))
        for rule in role.rules
    ]


class AccessPolicy:
    """The access rules of a listener, which can be replaced while clients are connected.

    `restricted` says whether there are any: otherwise clients may do everything, but for guarded
    topics, which are for clients of this machine and for `operators`.
    """

    def __init__(
        self,
        acl: AclRules | None = None,
        roles: Sequence[Role] = (),
        operators: Sequence[str] = (),
    ) -> None:
        self.roles = tuple(roles)
        self.operators = frozenset(operators)
        self.replace(acl)

    def become(self, other: "AccessPolicy") -> None:
        """Use what another policy says for every access that is asked for from now on."""
        self.roles, self.operators = other.roles, other.operators
        self.replace(other.acl)

    def replace(self, acl: AclRules | None) -> None:
        """Use the rules of this file for every access that is asked for from now on."""
        self.acl = acl
        self.restricted = acl is not None or bool(self.roles)
        self._users = {} if acl is None else acl.users
        patterns = [] if acl is None else acl.patterns
        self.patterns = Patterns(patterns)
        named = [*patterns, *(rule for role in self.roles for rule in role.rules)]
        self._names_clients = any("%c" in rule.topic_filter for rule in named)
        self._known: WeakValueDictionary[object, Access] = WeakValueDictionary()

    def access(self, username: str | None, client_id: str, *, local: bool, proven: bool) -> Access:
        """Return what a client may do, the same object for all whom the rules cannot tell apart.

        `local` is a client of this machine; the user name is `proven` by a password or a
        certificate.
        """
        if not self.restricted and username not in self.operators:
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
"""The rights of what is a part of the gateway."""
