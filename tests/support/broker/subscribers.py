"""Whoever subscribes, without a session behind it."""

from gateway.access.access import EVERYTHING


class Someone:
    """A subscriber, and a member of shared subscriptions that is as ready as it is set to be."""

    inline = True
    refusal = "it refuses"
    access = granted = EVERYTHING
    conflated = None

    def __init__(self, client_id: str = "anna") -> None:
        self.client_id = client_id
        self.how_ready = 0
        self.asked: list[int] = []

    def readiness(self, qos: int, _ahead: int = 0) -> int:
        """Note that it was asked for this QoS."""
        self.asked.append(qos)
        return self.how_ready
