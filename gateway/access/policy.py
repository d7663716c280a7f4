"""What the clients of one listener may read and write."""

from collections.abc import Sequence
from weakref import WeakValueDictionary

from gateway.access.access import Access
from gateway.access.acl_file import AclRules
from gateway.access.patterns import Patterns
from gateway.access.roles import Role, rules_of
from gateway.access.rule import Rule


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
        self._roles = tuple(roles)
        self.operators = frozenset(operators)
        self.replace(acl)

    def replace(self, acl: AclRules | None) -> None:
        """Use the rules of this file for every access that is asked for from now on."""
        self.acl = acl
        self.restricted = acl is not None or bool(self._roles)
        self._users = {} if acl is None else acl.users
        patterns = [] if acl is None else acl.patterns
        self.patterns = Patterns(patterns)
        named = [*patterns, *(rule for role in self._roles for rule in role.rules)]
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
        of_roles = rules_of(self._roles, username)
        return [*own, *of_roles] if of_roles else own


OPEN = AccessPolicy()
"""No rules at all."""

EVERYTHING = OPEN.access(None, "", local=True, proven=True)
"""The rights of what is a part of the gateway."""
