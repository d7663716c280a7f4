"""The rights at each listener, for sessions and wills whose client is not there."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gateway.access.access import Access
from gateway.access.common import CommonPolicy
from gateway.access.origin import Origin
from gateway.access.policy import OPEN, AccessPolicy


class ListenerRights(NamedTuple):
    """The rules of a listener, and whom it lets in.

    `is_user` says who has a password there, None where nobody is asked for one. `proves` says
    whether a user name is proven there, by a password or a certificate.
    """

    policy: AccessPolicy
    is_user: Callable[[str], bool] | None = None
    proves: bool = False


class Listeners:
    """The rights at each listener, by its name.

    Where the listener of a session or will is not known, or is no more, what is allowed at all
    `ruled` listeners is allowed. The socket for commands is not one of them: `open_to_operators`.
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
        """Return the origin as it is to be judged: without a listener that is not there.

        Where nothing is known of it, its user name counts as proven if some listener proves names.
        """
        if origin.listener in self._known:
            return origin
        proven = origin.proven
        if origin.listener is None:
            proven = any(each.proves for each in self._known.values())
        return Origin(None, local=False, proven=proven)

    def access(self, username: str | None, client_id: str, origin: Origin) -> Access:
        """Return what a client that came so may do now."""
        rights = self._known.get(origin.listener or "")
        policy = self._common if rights is None else rights.policy
        return policy.access(username, client_id, local=origin.local, proven=origin.proven)

    def has_user(self, username: str | None, origin: Origin) -> bool:
        """Return False for a user who came so and whose password was taken away since."""
        if username is None or not origin.proven:
            return True
        rights = self._known.get(origin.listener or "")
        if rights is not None:
            return rights.is_user is None or rights.is_user(username)
        asking = [each.is_user for each in self._known.values() if each.is_user is not None]
        return not asking or any(is_user(username) for is_user in asking)
