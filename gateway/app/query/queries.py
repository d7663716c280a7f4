"""Everything that can be asked of a running gateway, made and joined."""

from gateway.app.control import Control
from gateway.app.parts import Core, Run
from gateway.app.query.clients import ClientQueries
from gateway.app.query.ends import Ends
from gateway.app.query.queues import QueueQueries
from gateway.app.responder import Responder
from gateway.broker.notices import ConnectionEnd, Notice


class Queries:
    """The queries, of which the uplinks complete some (`queues.follow`)."""

    def __init__(self, run: Run, core: Core, control: Control) -> None:
        self.responder = Responder(run, core, control)
        self.queues = QueueQueries(run, core, self.responder)
        self._ends = Ends(run)
        ClientQueries(run, core, self.responder, self._ends)
        core.broker.notices.listeners.append(self._notice)

    def _notice(self, notice: Notice) -> None:
        if isinstance(notice, ConnectionEnd):
            self._ends.add(notice)
