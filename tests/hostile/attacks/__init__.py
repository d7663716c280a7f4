"""What clients do that mean no good; at scale 1 as large as it was seen to hurt."""

from tests.hostile.attacks import (
    deliveries,
    filters,
    hoards,
    packets,
    queries,
    retained,
    rights,
    sessions,
)

ATTACKS = (
    *packets.ATTACKS,
    *deliveries.ATTACKS,
    *retained.ATTACKS,
    *filters.ATTACKS,
    *sessions.ATTACKS,
    *rights.ATTACKS,
    *queries.ATTACKS,
    *hoards.ATTACKS,
)
