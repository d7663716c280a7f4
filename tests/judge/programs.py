"""Programs: what clients do, one step after the other, judged after each."""

from dataclasses import dataclass

from gateway.settings.broker import BrokerSettings
from tests.judge.agreement import agree, finish
from tests.judge.judge import Judge
from tests.judge.player import Profile
from tests.judge.steps import Step


@dataclass(frozen=True)
class Program:
    """Steps, and for whom."""

    profiles: tuple[Profile, ...]
    steps: tuple[Step, ...]
    settings: BrokerSettings
    durable: bool
    uplink: bool = False

    def run(self) -> Judge:
        """Run it to the end; raise DisagreementError where the brokers disagree."""
        judge = Judge(self.profiles, self.settings, durable=self.durable, uplink=self.uplink)
        for number, step in enumerate(self.steps):
            try:
                step.run(judge)
                agree(judge)
            except Exception as error:
                error.add_note(f"in step {number}: {str(step)[:300]}")
                raise
        finish(judge)
        return judge
