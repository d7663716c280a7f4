"""What every part of one uplink needs: settings, outbox, counters, clock and queues."""

from dataclasses import dataclass, field

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.uplink.link.metering import Metering
from gateway.uplink.remote_session import RemoteSession
from gateway.uplink.reports.control_messages import ControlMessages
from gateway.uplink.requests import Requests
from gateway.uplink.settings import UplinkSettings


@dataclass(frozen=True, slots=True)
class UplinkContext:
    """Made once for an uplink and given to each of its parts."""

    settings: UplinkSettings
    outbox: Outbox
    rejected: Rejected
    counters: Counters
    clock: Clock
    control_messages: ControlMessages
    metering: Metering
    session: RemoteSession
    requests: Requests = field(default_factory=Requests)
