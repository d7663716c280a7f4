"""Which pages may connect: their origin beside where the request goes, and what is named."""

from gateway.config.addresses import OwnHosts
from gateway.server.websocket.origins import Origins
from tests.support.table import table

HERE = "localhost:9001"
PANEL = ("https://Panel.example",)

CASES = [
    # no page at all, whatever Host says
    ([], [HERE], None, True),
    ([], ["attacker.example"], None, True),
    ([], [], None, True),
    # pages of the listener's own address
    (["http://localhost:9001"], [HERE], None, True),
    (["http://LOCALHOST:9001"], ["localhost.:9001"], None, True),
    (["http://127.0.0.1:9001"], ["127.0.0.1:9001"], None, True),
    (["http://[::1]:9001"], ["[::1]:9001"], None, True),
    (["http://localhost"], ["localhost"], None, True),
    (["http://localhost"], ["localhost:80"], None, True),
    (["http://localhost:9001"], [HERE], PANEL, True),
    # of another port, scheme or spelling of the host
    (["http://localhost:3000"], [HERE], None, False),
    (["http://localhost"], [HERE], None, False),
    (["https://localhost:9001"], [HERE], None, False),
    (["http://127.0.0.1:9001"], [HERE], None, False),
    (["ftp://localhost:9001"], [HERE], None, False),
    # a page whose name leads here (DNS rebinding)
    (["http://attacker.example:9001"], ["attacker.example:9001"], None, False),
    (["http://192.168.1.5:9001"], ["192.168.1.5:9001"], None, False),
    # Host missing, twice or no host
    (["http://localhost:9001"], [], None, False),
    (["http://localhost:9001"], [HERE, HERE], None, False),
    (["http://localhost:9001"], ["localhost:9001/"], None, False),
    # elsewhere, opaque, several, nonsense
    (["https://evil.example"], [HERE], None, False),
    (["null"], [HERE], None, False),
    (["null"], ["null"], None, False),
    (["http://localhost:9001", "http://localhost:9001"], [HERE], None, False),
    (["http://localhost:9001, http://localhost:9001"], [HERE], None, False),
    (["http://localhost:9001/"], [HERE], None, False),
    ([""], [HERE], None, False),
    # named
    (["https://panel.example"], [HERE], PANEL, True),
    (["https://panel.example:443"], ["whatever.example"], PANEL, True),
    (["https://panel.example:8443"], [HERE], PANEL, False),
    (["http://panel.example"], [HERE], PANEL, False),
    (["https://panel.example.evil.example"], [HERE], PANEL, False),
    (["null"], [HERE], PANEL, False),
    (["null"], [HERE], ("null",), True),
    (["https://evil.example"], [HERE], ("null",), False),
    (["https://evil.example"], [HERE], ("*",), True),
    (["null"], [HERE], ("*",), True),
    (["https://evil.example"], [HERE], (), False),
]


@table(("origins", "hosts", "named", "admitted"), CASES)
def test_a_page(
    origins: list[str], hosts: list[str], named: tuple[str, ...] | None, admitted: bool
) -> None:
    assert Origins(named, OwnHosts("127.0.0.1"), tls=False).admits(origins, hosts) == admitted


def test_behind_tls_pages_have_https() -> None:
    origins = Origins(None, OwnHosts("0.0.0.0"), tls=True)
    assert origins.admits(["https://192.168.1.5"], ["192.168.1.5:443"])
    assert not origins.admits(["http://192.168.1.5"], ["192.168.1.5:80"])
    assert not origins.admits(["https://attacker.example"], ["attacker.example"])
