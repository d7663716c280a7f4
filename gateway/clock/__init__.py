"""The time, and how well it is known."""

from gateway.clock.clock import Clock
from gateway.clock.kernel import Synchronization

__all__ = ["Clock", "Synchronization"]
