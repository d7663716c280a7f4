"""How a numbered message ended, in the words of the ledger that goes to the fleet."""

from enum import StrEnum


class Outcome(StrEnum):
    """The end of a message; what goes with it as its reason stands beside each.

    A message that still waits in the outbox has none yet.
    """

    DELIVERED = "delivered"  # the fleet has taken it
    FILTERED = "filtered"  # the rule that was asked last
    EXPIRED = "expired"  # "" for its own Message Expiry Interval, or the bound in age that ended it
    EVICTED = "evicted"  # the policy that made room, or `latest`
    REJECTED = "rejected"  # the reason code of the fleet's broker, as 0x99
    LOST = "lost"  # what was found: a damaged database
