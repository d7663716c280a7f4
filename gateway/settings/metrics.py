"""Who may read the figures: `[metrics]`."""

from collections.abc import Iterator

from gateway.settings.checks import boolean, hosts, text, whole_number
from gateway.settings.declaration import Mistake, key, settings_class
from gateway.settings.web_address import is_loopback


@settings_class
class MetricsSettings:
    """Figures and health [over HTTP](../operate/metrics.md), if the section is there."""

    host: str = key(
        text,
        "address to listen on",
        "127.0.0.1",
    )
    port: int = key(
        whole_number(1, 65_535),
        "TCP port",
        9234,
    )
    allow_anonymous: bool | None = key(
        boolean,
        "must be `true` beyond loopback: everybody can read the figures",
        None,
    )

    hosts: tuple[str, ...] = key(
        hosts,
        'other [names](../operate/metrics.md#host) of this machine, such as `["barn.lan"]`',
        (),
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - a shape
        """Yield conflicts."""
        if self.allow_anonymous is False:
            allowed = "there are no users here: true beyond loopback, otherwise left out"
            yield "allow_anonymous", False, allowed
        elif not self.allow_anonymous and not is_loopback(self.host):
            allowed = "everybody can read metrics, so beyond loopback say allow_anonymous = true"
            yield "host", self.host, allowed
