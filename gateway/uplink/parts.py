"""What the parts of one uplink work with together."""

from dataclasses import dataclass, field

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.uplink.metering import Metering
from gateway.uplink.own_messages import OwnMessages
from gateway.uplink.remote_session import RemoteSession
from gateway.uplink.requests import Requests
from gateway.uplink.settings import UplinkSettings


@dataclass(frozen=True, slots=True)
class UplinkParts:
    """Made once for an uplink, handed to everything in it."""

    settings: UplinkSettings
    outbox: Outbox
    rejected: Rejected
    counters: Counters
    clock: Clock
    own_messages: OwnMessages
    metering: Metering
    session: RemoteSession
    requests: Requests = field(default_factory=Requests)
