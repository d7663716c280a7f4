from gateway.bridges.supervision.supervised import Backoff


def test_waits_grow_to_the_bound_and_begin_anew_after_success() -> None:
    backoff = Backoff(1.0, 2.0, 5.0)
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    backoff.reset()
    assert [backoff.next() for _ in range(2)] == [1.0, 2.0]
