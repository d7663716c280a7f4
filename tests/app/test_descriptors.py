import resource
from collections.abc import Iterator

import pytest

from gateway.app.descriptors import RESERVED, UNLIMITED, connection_limit, raise_limit


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_is_raised_to_the_hard_one(limits: tuple[int, int]) -> None:
    _, hard = limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    for _ in range(2):
        assert raise_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


@pytest.mark.parametrize(
    ("soft", "connections"),
    [(256, 256 - RESERVED), (40, 1), (resource.RLIM_INFINITY, UNLIMITED)],
)
def test_connections_leave_descriptors_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, soft: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert connection_limit() == connections
