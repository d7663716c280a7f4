"""How soon a session can send a message that it is given now."""

from enum import IntEnum


class Readiness(IntEnum):
    """What becomes of the message; the lowest is the best."""

    READY = 0  # it is sent at once
    WAITING = 1  # it waits behind others
    AWAY = 2  # it waits for the client to come back
    FULL = 3  # it is lost, or refused
    ENDED = 4  # the session is not to get it: it has ended
