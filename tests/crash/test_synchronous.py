"""The disk is asked to keep a message before its publisher is told so.

Killing a process cannot tell `synchronous = FULL` from less: what was written survives in the
kernel's memory. So the order of the system calls themselves is looked at.
"""

from contextlib import aclosing
from pathlib import Path
from random import Random

import pytest

from crashtest.client import Client
from crashtest.gateway_process import CONFIGURATION
from crashtest.publisher import Publisher
from gateway.mqtt.packets import (
    Connect,
    Packet,
    PingReq,
    Publish,
    PubRel,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from gateway.mqtt.properties import Properties
from gateway.uplink.landing.file import OPEN
from tests.crash.conftest import MakeGateway
from tests.support.processes.crash_faults import Call, Strace, calls_in
from tests.support.processes.crash_gateway import OUTBOX_FIRST
from tests.support.table import table

MESSAGES = 20

CALLS = ("recvfrom", "sendto", "sendmsg", "write", "pwrite64", "fdatasync", "fsync")

KEPT = ("-wal", OPEN)
"""How the files end in which a message is kept: the write-ahead log, and a landing file."""

CONNECT, CONNACK, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK = 0x10, 0x20, 0x80, 0x90, 0xA0, 0xB0
PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 0x30, 0x40, 0x50, 0x60, 0x70

EXCHANGES = [
    (CONNECT, CONNACK),
    (SUBSCRIBE, SUBACK),
    (PUBLISH, PUBREC),
    (PUBREL, PUBCOMP),
    (UNSUBSCRIBE, UNSUBACK),
]
"""What a session must outlive a crash with, and the answers that say so."""


def unkept_answers(calls: list[Call], answer: int, request: int = PUBLISH) -> list[str]:
    """Return what is wrong with each answer of this type that a request got.

    Between the two the WAL, or a landing file, must be written and then synced without an error;
    the next commit may have begun to write by then.
    """
    wrong = []
    answers = [call for call in calls if sends(call) and call.data[:1] == bytes([answer])]
    for number, sent in enumerate(answers, 1):
        asked = [call.ended for call in calls if asks(call, request) and call.ended < sent.began]
        received = max(asked)
        between = [call for call in calls if received < call.began and call.ended < sent.began]
        files = [call for call in between if call.file.endswith(KEPT)]
        written = [call.ended for call in files if "write" in call.name]
        synced = [call.began for call in files if "sync" in call.name and call.result == 0]
        if not written:
            wrong.append(f"answer {number} was sent and nothing written before")
        elif not synced or max(synced) < min(written):
            wrong.append(f"answer {number} was sent before what was written was synced")
    return wrong or ([] if answers else ["no answer was sent"])


def sends(call: Call) -> bool:
    return call.name in ("sendto", "sendmsg") and call.file.startswith("socket:")


def asks(call: Call, request: int) -> bool:
    return call.name == "recvfrom" and call.result > 2 and call.data[0] & 0xF0 == request


@pytest.mark.strace
@pytest.mark.parametrize(("qos", "answer"), [(1, PUBACK), (2, PUBREC)])
@pytest.mark.parametrize("configuration", [CONFIGURATION, OUTBOX_FIRST], ids=["live", "outbox"])
async def test_every_answer_leaves_after_the_sync_of_what_it_promises(
    make_gateway: MakeGateway, tmp_path: Path, configuration: str, qos: int, answer: int
) -> None:
    gateway = make_gateway(configuration)
    await gateway.start()
    assert gateway.process is not None
    publisher = Publisher("p", [], Random(1), qos=qos, window=1, persistent=False)
    async with aclosing(publisher):
        await publisher.join(gateway.port)
        with Strace(gateway.process.pid, tmp_path / "trace", CALLS) as trace:
            await publisher.publish(MESSAGES)
            await publisher.idle()
    assert len(publisher.latencies) == MESSAGES
    calls = calls_in(trace.file.read_text())
    assert sum(asks(call, PUBLISH) for call in calls) == MESSAGES
    assert unkept_answers(calls, answer) == []


@pytest.mark.strace
async def test_every_answer_to_a_session_leaves_after_the_sync_of_its_change(
    make_gateway: MakeGateway, tmp_path: Path
) -> None:
    gateway = make_gateway()
    await gateway.start()
    assert gateway.process is not None
    requests: list[Packet] = [
        Subscribe(1, [SubscriptionRequest("a/#", 2)]),
        Publish("b", b"", 2, packet_id=2),
        PubRel(2),
        Unsubscribe(3, ["a/#"]),
        PingReq(),  # the last call may be cut off from the trace
    ]
    with Strace(gateway.process.pid, tmp_path / "trace", CALLS) as trace:
        forever = Properties(session_expiry_interval=0xFFFFFFFF)
        client = await Client.connect(gateway.port, Connect("s", properties=forever))
        packets = client.packets()
        for request in requests:
            client.send(request)
            await anext(packets)
        client.close()
    calls = calls_in(trace.file.read_text())
    found = {answer: unkept_answers(calls, answer, request) for request, answer in EXCHANGES}
    assert found == {answer: [] for _, answer in EXCHANGES}


RECEIVED = '7 recvfrom(9<socket:[5]>, "2\\t\\0", 262144, 0, NULL, NULL) = 9'
WRITTEN = '8 pwrite64(8</d/tidegate.db-wal>, "\\r\\0", 4096, 32) = 4096'
SYNCED = "8 fdatasync(8</d/tidegate.db-wal>) = 0"
SENT = '7 sendto(9<socket:[5]>, "@\\2\\0\\1", 4, 0, NULL, 0) = 4'


@table(
    ("lines", "fault"),
    [
        ([RECEIVED, WRITTEN, SYNCED, SENT], ""),
        ([RECEIVED, SENT, WRITTEN, SYNCED], "nothing written"),
        ([RECEIVED, WRITTEN, SENT, SYNCED], "before what was written was synced"),
        ([RECEIVED, SYNCED, WRITTEN, SENT], "before what was written was synced"),
        ([RECEIVED, WRITTEN, SYNCED.replace("= 0", "= -1 EIO (Input)"), SENT], "was synced"),
        ([RECEIVED, WRITTEN, SYNCED.replace("-wal", ""), SENT], "was synced"),
        ([RECEIVED, WRITTEN, SYNCED[:-4] + " <unfinished ...>", SENT], "was synced"),
        ([RECEIVED, WRITTEN, SYNCED], "no answer"),
    ],
)
def test_the_look_at_the_trace_sees_each_way_to_be_too_early(lines: list[str], fault: str) -> None:
    found = unkept_answers(calls_in("\n".join(lines)), PUBACK)
    assert [text for text in found if fault in text] if fault else found == []


def test_a_call_that_another_thread_interrupts_is_put_together() -> None:
    text = f"{SYNCED[:-5]} <unfinished ...>\n{RECEIVED}\n8 <... fdatasync resumed>) = 0"
    received, synced = calls_in(text)
    assert (received.name, received.data) == ("recvfrom", b"2\t\0")
    assert (synced.file, synced.result, synced.began, synced.ended) == (
        "/d/tidegate.db-wal",
        0,
        0,
        2,
    )
