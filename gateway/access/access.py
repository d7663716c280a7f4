"""What one client, or all whom the rules cannot tell apart, may read and write."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.access.patterns import NO_PATTERNS
from gateway.access.rule import READ, WRITE, Rule, covers, overlaps, rights
from gateway.access.topics import DELAY, is_guarded, may_publish, undelayed

if TYPE_CHECKING:
    from gateway.access.policy import AccessPolicy

ALL = READ | WRITE

KEPT_PATTERNS = 16
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
        if topic.startswith("$") and is_guarded(topic):
            granted = self._guarded_rights(topic)
        elif self.restricted:
            granted, denied = rights(self._own, topic) if self._own else (0, False)
            if granted != ALL and not denied:
                granted |= self._rights_of_patterns(topic)
        else:
            granted = ALL
        return granted if may_publish(topic) else granted & READ

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
        patterns.look_at(topic)
        if patterns.granted is not None:
            return patterns.granted
        few = len(patterns) <= KEPT_PATTERNS
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
        if len(named) <= KEPT_PATTERNS:
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
