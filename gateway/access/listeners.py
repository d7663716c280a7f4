"""The rights at each listener, by a client's origin; also if the listener was removed."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from gateway.access.access import OPEN, Access, AccessPolicy


class Origin(NamedTuple):
    """The `listener` of a client, None if it is unknown or was removed.

    A `local` client is on this machine; its user name may be `proven` by a password, a certificate
    or an authentication method.
    """

    listener: str | None
    local: bool
    proven: bool


UNKNOWN = Origin(None, local=False, proven=False)
"""The origin of a session whose listener is unknown."""


class CommonAccess(Access):
    """What all of several accesses allow."""

    __slots__ = ("_each",)

    def __init__(
        self,
        policy: AccessPolicy,
        each: tuple[Access, ...],
        username: str | None,
        client_id: str,
        *,
        local: bool,
        proven: bool,
    ) -> None:
        super().__init__(policy, username, client_id, local=local, proven=proven)
        self._each = each
        self.restricted = any(one.restricted for one in each)
        self.weight = sum(one.weight for one in each)

    def rights(self, topic: str) -> int:
        """Return the sum of READ and WRITE that every access has on a topic."""
        common = self._each[0].rights(topic)
        for one in self._each[1:]:
            common &= one.rights(topic)
        return common

    def may_subscribe(self, topic_filter: str) -> bool:
        """Return whether every access may read some topic that the topic filter matches."""
        return all(one.may_subscribe(topic_filter) for one in self._each)


class CommonPolicy(AccessPolicy):
    """What every one of several policies allows at the time of the query."""

    def __init__(self, policies: Sequence[AccessPolicy]) -> None:
        super().__init__()
        self._policies = tuple(policies)
        self._common: WeakValueDictionary[tuple[Access, ...], CommonAccess] = WeakValueDictionary()

    def access(self, username: str | None, client_id: str, *, local: bool, proven: bool) -> Access:
        """Return a client's rights under all of the policies."""
        each = tuple(
            policy.access(username, client_id, local=local, proven=proven)
            for policy in self._policies
        )
        known = self._common.get(each)
        if known is None:
            known = CommonAccess(self, each, username, client_id, local=local, proven=proven)
            self._common[each] = known
        return known


class ListenerRights(NamedTuple):
    """The rules and users of a listener.

    `is_user` returns whether a user has a password there, None if no password is required. `proves`
    is whether a user name is proven there, by a password or a certificate.
    """

    policy: AccessPolicy
    is_user: Callable[[str], bool] | None = None
    proves: bool = False


class Listeners:
    """The rights at each listener, by its name.

    If the listener of a session or will is unknown, or was removed, only what all `ruled` listeners
    allow is allowed. The socket for commands is not one of them: `open_to_operators`.
    """

    def __init__(
        self,
        ruled: Mapping[str, ListenerRights] | None = None,
        open_to_operators: Mapping[str, ListenerRights] | None = None,
    ) -> None:
        ruled = ruled or {}
        self._known = {**ruled, **(open_to_operators or {})}
        policies = list(dict.fromkeys(each.policy for each in ruled.values()))
        self._common = CommonPolicy(policies) if len(policies) > 1 else [*policies, OPEN][0]

    def origin(self, origin: Origin) -> Origin:
        """Return the origin for a decision: without a listener that was removed.

        If the listener is unknown, the user name counts as proven if some listener proves names.
        """
        if origin.listener in self._known:
            return origin
        proven = origin.proven
        if origin.listener is None:
            proven = any(each.proves for each in self._known.values())
        return Origin(None, local=False, proven=proven)

    def access(self, username: str | None, client_id: str, origin: Origin) -> Access:
        """Return the present rights of a client with this origin."""
        rights = self._known.get(origin.listener or "")
        policy = self._common if rights is None else rights.policy
        return policy.access(username, client_id, local=origin.local, proven=origin.proven)

    def has_user(self, username: str | None, origin: Origin) -> bool:
        """Return False for a user with this origin whose password was removed since."""
        if username is None or not origin.proven:
            return True
        rights = self._known.get(origin.listener or "")
        if rights is not None:
            return rights.is_user is None or rights.is_user(username)
        asking = [each.is_user for each in self._known.values() if each.is_user is not None]
        return not asking or any(is_user(username) for is_user in asking)
