from gateway.uplink.fleet.keep_alive import KeepAlive


def test_silence_in_either_direction_asks_for_a_ping() -> None:
    for move in (KeepAlive.sent, KeepAlive.received):
        keep_alive = KeepAlive(30, 0.0)
        move(keep_alive, 20.0)
        assert not keep_alive.due(29.9)
        assert keep_alive.due(30.0)
        assert not keep_alive.due(31.0)  # one is under way


def test_signs_of_life_both_ways_put_the_ping_off() -> None:
    keep_alive = KeepAlive(30, 0.0)
    keep_alive.sent(20.0)
    keep_alive.received(21.0)
    assert not keep_alive.due(49.9)
    assert keep_alive.due(50.0)


def test_without_any_answer_it_is_over() -> None:
    keep_alive = KeepAlive(30, 0.0)
    assert not keep_alive.over(1_000.0)
    assert keep_alive.due(30.0)
    assert not keep_alive.over(59.9)
    assert keep_alive.over(60.0)
    keep_alive.received(60.0)
    assert not keep_alive.over(60.0)


def test_0_asks_for_none() -> None:
    assert not KeepAlive(0, 0.0).due(1e6)
