"""The report of a crash test."""

from collections.abc import Sequence
from statistics import median

from crashtest.full_database import LIMIT, Full
from crashtest.numbers import Promise
from crashtest.rounds import Rounds

PROMISE = """\
What the gateway has acknowledged (PUBACK, PUBREC, SUBACK) must survive its process: every message
for the fleet and for persistent sessions, in order, those of QoS 2 once; sessions with their
subscriptions, and retained messages. When its database cannot grow, it must refuse messages (0x97,
or by closing an MQTT 3.1.1 connection) and lose none that it acknowledged.
"""

NOT_TESTED = """\
Not tested: a loss of power. What a killed process has written is still in the kernel's memory. To
test whether this device stores what it reports as stored, pull its plug.
"""


def report(rounds: Rounds, full: Full | None, findings: Sequence[str]) -> str:
    """Return the report as lines of text."""
    lines = [_counted(rounds), "", PROMISE]
    if findings:
        lines += [f"LOST: {finding}" for finding in findings]
    else:
        lines += [_acknowledged_by(full)]
    lines += ["", _window(rounds), _latency(rounds), "", NOT_TESTED]
    return "\n".join(lines)


def _counted(rounds: Rounds) -> str:
    figures = rounds.figures
    acknowledged = sum(
        sent.promise is Promise.ACKNOWLEDGED
        for publisher in rounds.publishers
        for sent in publisher.sent
    )
    return (
        f"{figures.rounds} rounds, {figures.kills} kills, {acknowledged} messages acknowledged; "
        f"compared: {len(rounds.subscribers)} persistent sessions, the outbox with the landing "
        f"files ({rounds.records.waiting + rounds.records.landed} records), retained messages."
    )


def _acknowledged_by(full: Full | None) -> str:
    lines = ["Found: 0 lost, 0 of QoS 2 twice, 0 out of order."]
    if full is not None:
        lines.append(
            f"Full database (no file larger than {LIMIT // 1024**2} MiB): refused with 0x97; all "
            f"{full.acknowledged} messages acknowledged before are there; it works again with"
            " free space."
        )
    return "\n".join(lines)


def _window(rounds: Rounds) -> str:
    """Return the loss window: what a kill can take, since nothing was promised for it yet."""
    windows = rounds.figures.windows
    if not windows:
        return "Loss window: no kill happened while messages were published."
    counts = [count for count, _ in windows]
    oldest = max(seconds for _, seconds in windows)
    return (
        "Loss window: 0 acknowledged messages. Without an acknowledgement at a kill: "
        f"{median(counts):.0f} messages (median), {max(counts)} at most, the oldest "
        f"{1000 * oldest:.0f} ms after it was sent; their publishers send them again."
    )


def _latency(rounds: Rounds) -> str:
    latencies = sorted(each for publisher in rounds.publishers for each in publisher.latencies)
    if not latencies:
        return "No answer arrived."
    last = latencies[int(0.99 * (len(latencies) - 1))]
    return (
        f"Answers took {1000 * median(latencies):.1f} ms (median), "
        f"{1000 * last:.1f} ms (99 of 100), {1000 * latencies[-1]:.0f} ms at most."
    )
