"""Who may read the figures."""

from gateway.config.listener import Mistake, is_loopback
from gateway.config.settings import MetricsConfig


def find_metrics_mistake(metrics: MetricsConfig) -> Mistake | None:
    """Return (key, value, what is allowed) of what does not go together; None if all does."""
    if metrics.allow_anonymous is False:
        allowed = "there are no users here: true beyond loopback, otherwise left out"
        return "allow_anonymous", False, allowed
    if not metrics.allow_anonymous and not is_loopback(metrics.host):
        allowed = "everybody can read metrics, so beyond loopback say allow_anonymous = true"
        return "host", metrics.host, allowed
    return None
