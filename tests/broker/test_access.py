from gateway.broker.access import Anonymous


def test_anonymous_lets_everyone_in() -> None:
    assert Anonymous().check(None, None)
    assert Anonymous().check("anna", b"x")
