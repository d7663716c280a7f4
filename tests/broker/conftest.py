from typing import Any

import pytest

from gateway.broker.runs import pass_on, pass_on_again
from tests.support.broker_harness import Harness
from tests.support.numbered_runs import PASS_ON, PASS_ON_AGAIN


@pytest.fixture
def harness() -> Harness:
    return Harness()


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Give the answers of `pass_on`: True for each run that was handled as one."""
    answers: list[bool] = []

    def noting(*arguments: Any) -> bool:
        answers.append(pass_on(*arguments))
        return answers[-1]

    monkeypatch.setattr("gateway.broker.broker.pass_on", noting)
    return answers


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how many messages each run had, 0 for a message that was handled as others are."""
    counts: list[int] = []

    def noting(broker: Any, *arguments: Any) -> bool:
        before = broker.traffic.messages_received
        done = pass_on(broker, *arguments)
        counts.append(broker.traffic.messages_received - before)
        return done

    def noting_again(broker: Any, *arguments: Any) -> bool:
        before = broker.traffic.messages_received
        done = pass_on_again(broker, *arguments)
        if done:
            counts.append(broker.traffic.messages_received - before)
        return done

    monkeypatch.setattr(PASS_ON, noting)
    monkeypatch.setattr(PASS_ON_AGAIN, noting_again)
    return counts
