"""How a client came, which decides about its rights beside its names."""

from typing import NamedTuple


class Origin(NamedTuple):
    """The `listener` by which a client came, None where that is not known or is no more.

    A `local` client is on this machine; its user name may be `proven` by a password, a certificate
    or an authentication method.
    """

    listener: str | None
    local: bool
    proven: bool


UNKNOWN = Origin(None, local=False, proven=False)
"""That of a session of whose listener nothing is known."""
