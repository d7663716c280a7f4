"""The rights that several policies have in common."""

from collections.abc import Sequence
from weakref import WeakValueDictionary

from gateway.access.access import Access
from gateway.access.policy import AccessPolicy


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
    """What every one of several policies allows, as they are when it is asked."""

    def __init__(self, policies: Sequence[AccessPolicy]) -> None:
        super().__init__()
        self._policies = tuple(policies)
        self._common: WeakValueDictionary[tuple[Access, ...], CommonAccess] = WeakValueDictionary()

    def access(self, username: str | None, client_id: str, *, local: bool, proven: bool) -> Access:
        """Return what a client may do under each of the policies."""
        each = tuple(
            policy.access(username, client_id, local=local, proven=proven)
            for policy in self._policies
        )
        known = self._common.get(each)
        if known is None:
            known = CommonAccess(self, each, username, client_id, local=local, proven=proven)
            self._common[each] = known
        return known
