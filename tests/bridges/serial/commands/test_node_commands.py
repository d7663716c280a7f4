"""Commands from a client to the node's own code and back, over a line that loses what it likes."""

import asyncio

import pytest

from gateway.bridges.serial import node_commands
from gateway.bridges.serial.frame_body import MalformedFrameError, decode_frame
from gateway.bridges.serial.node_commands import ATTEMPTS, NODES_MAX, WAITING_MAX, NodeCommands
from gateway.mqtt.reason_codes import ReasonCode
from tests.bridges.serial.commands.rig import BOOT, Rig, Ticks
from tests.support.clocks import NOW, ManualClock
from tests.support.disk.storage import until
from tests.support.table import table


async def test_a_command_is_carried_out_and_answered(rig: Rig) -> None:
    assert rig.tell(command="identify", seconds=7, id="a") == [ReasonCode.SUCCESS]
    await until(lambda: bool(rig.answers))
    assert rig.answers == [{"id": "a", "command": "identify", "status": "done"}]
    assert rig.board.identified == [7]


async def test_commands_of_a_node_go_one_after_the_other(rig: Rig) -> None:
    for number in range(1, 6):
        rig.tell(command="identify", seconds=number, id=number)
    await until(lambda: len(rig.answers) == 5)
    assert [each["id"] for each in rig.answers] == rig.board.identified == [1, 2, 3, 4, 5]


async def test_what_is_lost_is_sent_again_and_carried_out_once(rig: Rig) -> None:
    rig.line.lost_to_node, rig.line.lost_answers = 2, 3
    rig.tell(command="identify")
    await until(lambda: bool(rig.answers))
    assert rig.answers == [{"command": "identify", "status": "done"}]
    assert rig.board.identified == [10]
    assert len(rig.line.sent) >= 6


async def test_without_an_answer_the_client_is_told_and_the_next_one_goes(rig: Rig) -> None:
    rig.line.lost_to_node = ATTEMPTS
    rig.tell(command="read")
    rig.tell(command="identify")
    await until(lambda: len(rig.answers) == 2)
    assert rig.answers[0] == {
        "command": "read",
        "status": "no answer",
        "reason": f"sent {ATTEMPTS} times",
    }
    assert rig.answers[1]["status"] == "done"


async def test_a_gateway_that_starts_anew_goes_on_behind_the_last_number(rig: Rig) -> None:
    rig.tell(command="identify")
    rig.tell(command="identify")
    await until(lambda: len(rig.answers) == 2)
    for known in rig.bridge._intake._on_node.__self__._nodes.values():  # type: ignore[attr-defined]  # what a restart forgets
        known.numbers[known.boot] = 0
    rig.tell(command="identify", seconds=9)
    await until(lambda: len(rig.answers) == 3)
    assert rig.board.identified == [10, 10, 9]


async def test_a_restart_is_done_when_the_node_is_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_commands, "RESEND_SECONDS", 0.2)
    rig.line.lost_answers = 1_000_000
    rig.tell(command="restart")
    await until(lambda: rig.board.restarted or rig.node._boot == BOOT + 1)
    await until(lambda: bool(rig.answers))
    assert rig.answers == [{"command": "restart", "status": "done"}]


async def test_what_waits_goes_to_the_next_start_of_the_node(rig: Rig) -> None:
    rig.line.lost_to_node = 1
    rig.tell(command="identify", seconds=3)
    rig.boot(BOOT + 5)
    await until(lambda: bool(rig.answers))
    assert rig.board.identified == [3]


async def test_two_nodes_of_one_name_do_not_have_a_command_sent_for_ever(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes to one of them, ten times at most; to the other one once that is silent."""
    monkeypatch.setattr(node_commands, "RESEND_SECONDS", 0.01)
    commands: NodeCommands = rig.bridge._intake._on_node.__self__  # type: ignore[attr-defined]
    clock = ManualClock()
    object.__setattr__(rig.host.services, "clock", clock)
    rig.line.lost_to_node = 1_000_000
    for boot in (71, 72):
        commands.received("n1", boot)
    rig.tell(command="identify")
    sent = len(rig.line.sent)
    while not rig.answers:
        for boot in (71, 72):
            commands.received("n1", boot)
        await asyncio.sleep(0.001)
    assert rig.answers[0]["status"] == "no answer"
    assert len(rig.line.sent) - sent < ATTEMPTS
    assert commands._nodes["n1"].boot == 72
    clock.step(node_commands.SILENT_SECONDS)
    commands.received("n1", 71)
    assert commands._nodes["n1"].boot == 71
    assert rig.gateway.counters.count("tidegate/serial/node_conflicts") > 1


async def test_a_node_refuses_what_its_board_cannot(rig: Rig) -> None:
    rig.node._board = None
    rig.tell(command="identify")
    await until(lambda: bool(rig.answers))
    assert (rig.answers[0]["status"], rig.answers[0]["reason"]) == (
        "refused",
        "the node does not allow it",
    )


async def test_too_many_that_wait_are_refused(rig: Rig) -> None:
    rig.line.lost_to_node = 1_000_000
    codes = [rig.tell(command="read")[0] for _ in range(WAITING_MAX + 1)]
    assert codes == [ReasonCode.SUCCESS] * WAITING_MAX + [ReasonCode.QUOTA_EXCEEDED]
    assert rig.gateway.figure("serial/commands_refused") == 1


async def test_only_so_many_nodes_are_given_commands(rig: Rig) -> None:
    for number in range(NODES_MAX + 5):
        rig.boot(number, f"node{number}")
        rig.node.step()
        await until(rig.line.to_gateway.empty)
    assert len(rig.gateway.subscriptions.receivers) == NODES_MAX


async def test_answers_that_nobody_takes_are_counted(rig: Rig) -> None:
    rig.gateway.broker.code = ReasonCode.QUOTA_EXCEEDED
    rig.tell(command="read")
    await until(lambda: rig.gateway.figure("serial/answers_lost") == 1)


async def test_a_gateway_that_knows_the_time_sets_the_clocks_of_nodes(rig: Rig) -> None:
    """At a node's start and each hour; nobody asked, so nobody is answered."""
    clock = ManualClock()
    object.__setattr__(rig.host.services, "clock", clock)
    rig.boot(BOOT + 6)

    async def heard() -> None:
        frames = len(rig.gateway.broker.messages)
        rig.node.read_now()
        await until(lambda: len(rig.gateway.broker.messages) > frames)

    def ahead() -> int | None:
        return None if rig.node._ahead is None else rig.node._ahead + Ticks().ms()

    await heard()
    assert ahead() is None
    clock.synchronize(NOW)
    clock.step(node_commands.CLOCK_CHECK_SECONDS)
    await heard()
    await until(lambda: ahead() is not None)
    assert abs((ahead() or 0) - clock.wall_ms()) < 60_000
    clock.step(node_commands.CLOCK_SECONDS - 1)
    await heard()
    assert rig.gateway.figure("serial/commands") == 1
    clock.step(1)
    await heard()
    await until(lambda: abs((ahead() or 0) - clock.wall_ms()) < 60_000)
    rig.boot(BOOT + 7)
    await heard()
    await until(lambda: ahead() is not None)
    assert rig.gateway.figure("serial/commands") == 3
    assert rig.answers == []


@table("body", [b"\1\4", b"\1\4\7" + b"\0" * 12, b"\1\4\0" + b"\0" * 13])
def test_answers_that_are_none_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedFrameError, match="answer to a command"):
        decode_frame(body)
