"""Commands to the nodes of one line: one at a time for each, repeated until it is answered."""

import asyncio
import json
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial

from gateway.bridges.serial.frame_body import Answer, AnswerStatus, encode_command
from gateway.bridges.serial.frame_body import Command as Kind
from gateway.bridges.serial.node_order import Order, RefusedOrderError, parse_order
from gateway.bridges.serial.serial_frames import encode_frame
from gateway.bridges.supervision.host import Host
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

NODES_MAX = 64
"""Nodes of one line that can receive commands: the first that were heard."""

WAITING_MAX = 16
"""Commands of one node; a further one is refused with 0x97 (quota exceeded)."""

RESEND_SECONDS = 1.0
"""Seconds after which an unanswered command is repeated."""

ATTEMPTS = 10
"""Times that a command is sent before its client gets `no answer`."""

STARTS_MAX = 4
"""Starts of a node that are stored: if one of them is heard again, two nodes have its name."""

SILENT_SECONDS = 60.0
"""Seconds after which another node of the same name receives the commands."""

CLOCK_SECONDS = 3600.0
"""Seconds after which a node's clock is set again; a board's is then wrong by a fifth of a
second."""

CLOCK_CHECK_SECONDS = 10.0
"""Seconds between two checks whether the gateway's own clock is synchronized."""

logger = logging.getLogger(__name__)

WORDS = {
    AnswerStatus.DONE: ("done", ""),
    AnswerStatus.NOT_ALLOWED: ("refused", "the node does not allow it"),
    AnswerStatus.NOT_KNOWN: ("refused", "the node has no such command"),
    AnswerStatus.NOT_VERIFIED: ("refused", "the program does not verify"),
    AnswerStatus.NOT_NEWER: ("refused", "the node has another program of this or a later version"),
    AnswerStatus.NO_SPACE: ("refused", "the node has no space for a further program"),
}


class Node:
    """The last known state of one node, and its commands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.boot = -1
        self.numbers: OrderedDict[int, int] = OrderedDict()
        """The last command's number, by the node's latest starts."""
        self.received_at = float("-inf")
        """When the present start was last heard."""
        self.clock_due = float("-inf")
        self.orders: deque[Order] = deque()
        self.timer: asyncio.TimerHandle | None = None
        self.update: asyncio.Task[None] | None = None
        self.warned = False
        """Whether a second node of this name was logged."""

    def begin(self, boot: int) -> None:
        """Make a start the present one."""
        self.boot = boot
        self.numbers.setdefault(boot, 0)
        self.numbers.move_to_end(boot)
        if len(self.numbers) > STARTS_MAX:
            self.numbers.popitem(last=False)

    def stop(self) -> None:
        """Repeat nothing any more."""
        if self.timer is not None:
            self.timer.cancel()


class NodeCommands:
    """Sends messages on `sensors/<node>/command` to the node; publishes its answers.

    `port` is where the nodes are; `write` sends bytes and returns whether they were sent.
    """

    def __init__(self, host: Host, port: str, write: Callable[[bytes], bool]) -> None:
        self._host = host
        self._port = port
        self._write = write
        self._nodes: dict[str, Node] = {}
        host.at_end(self.stop)

    def stop(self) -> None:
        """Send nothing any more."""
        for node in self._nodes.values():
            node.stop()
            if node.update is not None:
                node.update.cancel()

    def received(self, name: str, boot: int) -> None:
        """Note that a node is present, in its start `boot`."""
        node = self._nodes.get(name)
        if node is None:
            if len(self._nodes) == NODES_MAX:
                return
            node = self._nodes[name] = Node(name)
            self._host.listen(f"sensors/{name}/command", partial(self._receive, node))
        now = self._host.services.clock.monotonic()
        if boot not in node.numbers:
            node.begin(boot)
            node.clock_due = float("-inf")
            self._go_on_after_restart(node)
        elif boot != node.boot and not self._note_conflict(node, boot, now):
            return
        node.received_at = now
        self._set_clock(node)

    def answered(self, answer: Answer) -> None:
        """Handle a node's answer; one to a command that is not pending is ignored."""
        for node in self._nodes.values():
            if node.boot == answer.boot and node.orders and node.update is None:
                order = node.orders[0]
                if order.number != answer.number:
                    return
                if answer.status is AnswerStatus.OUT_OF_DATE:  # numbered by an earlier run
                    node.numbers[node.boot], order.number = answer.last, 0
                    self._send(node)
                else:
                    self._finish(node, *WORDS[answer.status])

    def _note_conflict(self, node: Node, boot: int, now: float) -> bool:
        """Return whether a known start gets the commands: two nodes have one name."""
        self._host.count("node_conflicts")
        if not node.warned:
            node.warned = True
            logger.warning(
                "%s: two nodes are called %s; commands go to the one that started last",
                self._host.title,
                node.name,
            )
        if now - node.received_at < SILENT_SECONDS:
            return False
        node.begin(boot)
        if node.orders:
            node.orders[0].number = 0
        return True

    def _receive(self, node: Node, message: Message) -> ReasonCode:
        try:
            order = parse_order(bytes(message.payload), node.name)
        except RefusedOrderError as failure:
            fields = {**failure.named, "status": "refused", "reason": str(failure)}
            # the current message is not completely handled yet
            asyncio.get_running_loop().call_soon(self._answer, node, fields)
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        if len(node.orders) == WAITING_MAX:
            self._host.count("commands_refused")
            return ReasonCode.QUOTA_EXCEEDED
        node.orders.append(order)
        if len(node.orders) == 1:
            self._send(node)
        return ReasonCode.SUCCESS

    def _set_clock(self, node: Node) -> None:
        """Set a node's clock after its start and each hour, while the gateway's is synchronized."""
        clock = self._host.services.clock
        now = clock.monotonic()
        if node.orders or now < node.clock_due:
            return
        if not clock.synchronization().synchronized:
            node.clock_due = now + CLOCK_CHECK_SECONDS
            return
        node.clock_due = now + CLOCK_SECONDS
        node.orders.append(Order(Kind.CLOCK, quiet=True))
        self._send(node)

    def _go_on_after_restart(self, node: Node) -> None:
        """Resend the command that the start before did not answer.

        A restart command was executed.
        """
        if not node.orders or node.update is not None:  # an update restarts it itself
            return
        order = node.orders[0]
        if order.command is Kind.RESTART and order.attempts:
            self._finish(node, "done", "")
            return
        order.number = 0
        self._send(node)

    def _send(self, node: Node) -> None:
        node.stop()
        order = node.orders[0]
        if order.command is None:
            node.update = asyncio.create_task(self._update(node))
            return
        if order.attempts == ATTEMPTS:
            self._finish(node, "no answer", f"sent {ATTEMPTS} times")
            return
        order.attempts += 1
        if not order.number:
            node.numbers[node.boot] += 1
            order.number = node.numbers[node.boot]
        argument = order.argument(self._host.services.clock)
        body = encode_command(node.boot, order.number, order.command, argument)
        left = self._write(encode_frame(body))
        self._host.count("commands" if left else "commands_dropped")
        node.timer = asyncio.get_running_loop().call_later(RESEND_SECONDS, self._send, node)

    async def _update(self, node: Node) -> None:
        reason = await self._host.services.update(self._port)
        node.update = None
        self._finish(node, "failed" if reason else "done", reason)

    def _finish(self, node: Node, status: str, reason: str) -> None:
        node.stop()
        order = node.orders.popleft()
        fields = {"command": order.name, "status": status}
        if reason:
            fields["reason"] = reason
        if not order.quiet:
            self._answer(node, fields if order.id is None else {"id": order.id, **fields})
        if node.orders:
            self._send(node)

    def _answer(self, node: Node, fields: dict[str, str | int] | dict[str, str]) -> None:
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        payload = text.encode(errors="replace")  # a client's JSON may contain half a surrogate pair
        if self._host.send(f"sensors/{node.name}/command/answer", payload) >= 0x80:
            self._host.count("answers_lost")
