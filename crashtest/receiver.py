"""Compares what was acknowledged with what somebody got."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crashtest.numbers import Promise, Received, Sent, ranges
from crashtest.publisher import WRITTEN


@dataclass(slots=True)
class Receiver:
    """Somebody who must get every acknowledged message below `roots`; `exactly_once` of QoS 2.

    What has been compared once and was there is not looked at again.
    """

    name: str
    received: Mapping[str, Received]
    exactly_once: bool
    roots: Sequence[str] = (WRITTEN,)
    compared: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def missing(self, sender: str, sent: Sequence[Sent]) -> list[Sent]:
        """Return the acknowledged messages of a sender that have not come."""
        counts = self.received[sender].counts
        missing = []
        settled = True
        for message in sent[self.compared[sender] :]:
            there = message.number in counts or message.removes
            if message.promise is Promise.ACKNOWLEDGED and not there:
                missing.append(message)
            settled = settled and (there or message.promise is Promise.REFUSED)
            if settled and message.promise is not Promise.NONE:
                self.compared[sender] = message.number
        return missing

    def compare(self, sender: str, qos: int, sent: Sequence[Sent]) -> list[str]:
        """Return a sentence for each way in which the promise was broken; what it names is told."""
        received = self.received[sender]
        findings = []
        if missing := self.missing(sender, sent):
            numbers = ranges([message.number for message in missing])
            rounds = ranges(sorted({message.round for message in missing}))
            findings.append(
                f"{self.name} lacks {len(missing)} acknowledged messages of {sender}: "
                f"{numbers} (round {rounds})"
            )
        if qos == 2 and self.exactly_once and received.repeated:
            numbers = ranges(sorted(set(received.repeated)))
            findings.append(f"{self.name} got QoS 2 messages of {sender} twice: {numbers}")
        if received.disorder:
            pairs = ", ".join(f"{one} after {other}" for one, other in received.disorder[:10])
            findings.append(f"{self.name} got messages of {sender} out of order: {pairs}")
        return findings
