"""What has changed of one persistent session since it was last written."""

from gateway.session.delivery import Delivery
from gateway.session.inflight_run import InflightRun
from gateway.session.kept import KeptSubscription


class Changes:
    """What is to be written of a session; deliveries stand for themselves by their places."""

    __slots__ = (
        "gone",
        "incoming",
        "lent",
        "lent_runs",
        "owed",
        "owed_runs",
        "packet_ids",
        "released",
        "row",
        "subscriptions",
    )

    def __init__(self) -> None:
        self.row = False  # the session's own row
        self.owed: dict[int, Delivery] = {}  # to be written with the next batch
        self.lent: dict[int, Delivery] = {}  # to be written with the one after that
        self.owed_runs: dict[int, InflightRun] = {}  # both by the place of the first
        self.lent_runs: dict[int, InflightRun] = {}
        self.gone: list[int] = []  # written, and to be deleted
        self.packet_ids: dict[int, int] = {}
        self.released: set[int] = set()
        self.incoming: dict[int, bool] = {}  # True: to be kept, False: to be forgotten
        self.subscriptions: dict[str, KeptSubscription | None] = {}  # None: to be forgotten
