from gateway.broker.connecting.connection_info import Anonymous, Credentials
from gateway.broker.instant import Instant


def test_anonymous_lets_everyone_in() -> None:
    said: list[bool | None] = []
    for username, password in ((None, None), ("anna", b"x")):
        credentials = Credentials("192.0.2.7", username, password)
        Anonymous().check(credentials, Instant(0.0, 0), lambda right, _: said.append(right))
    assert said == [True, True]
