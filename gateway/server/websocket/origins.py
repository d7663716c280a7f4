"""Which web pages may open a WebSocket (RFC 6455, section 10.2)."""

from collections.abc import Sequence

from gateway.config.addresses import OwnHosts
from gateway.settings.web_address import ANY, DEFAULT_PORTS, OPAQUE, authority, origin


class Origins:
    """Admits pages of the listener's own address, pages that are `named`, and other clients.

    A browser sends the page's origin in every handshake, and other clients send none. A page has
    the listener's own address if its origin equals Host, which must be an address or name of this
    machine. Otherwise any domain whose name was made to resolve to this machine would qualify.
    """

    def __init__(self, named: Sequence[str] | None, hosts: OwnHosts, *, tls: bool) -> None:
        named = named or ()
        self._any = ANY in named
        self._opaque = OPAQUE in named
        self._named = frozenset(origin(each) for each in named if each not in (ANY, OPAQUE))
        self._hosts = hosts
        self._scheme = "https" if tls else "http"

    def admits(self, origins: Sequence[str], hosts: Sequence[str]) -> bool:
        """Return whether a handshake with these Origin and Host fields is admitted."""
        if not origins or self._any:
            return True
        if len(origins) > 1:
            return False
        if origins[0] == OPAQUE:
            return self._opaque
        page = origin(origins[0])
        if page is None or page in self._named:
            return page is not None
        return self._is_own(page, hosts)

    def _is_own(self, page: tuple[str, tuple[str, int]], hosts: Sequence[str]) -> bool:
        """Return whether the page came from the host of the request."""
        scheme, address = page
        here = authority(hosts[0]) if len(hosts) == 1 else None
        if here is None or scheme != self._scheme or here.host not in self._hosts:
            return False
        return address == (here.host, here.port or DEFAULT_PORTS[scheme])
