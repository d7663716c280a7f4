"""What one client takes for itself of what is for all, and what it never fetches."""

from tests.hostile.scene import Attack, Scene, publish_at_qos_1
from tests.hostile.wire import connect, publish_numbered, subscribe

FOR_EVER = b"\x11\xff\xff\xff\xff"
"""The property of CONNECT that asks for a session without end."""

REFUSED = 0x97


def sessions_for_ever(scene: Scene) -> None:
    """20,000 sessions without end that one client leaves behind."""
    for number in range(scene.many(20_000)):
        attacker = scene.attacker()
        attacker.send(connect(f"hoard-{number}", 5, FOR_EVER, flags=0))
        answer = attacker.next()
        attacker.close()
        if answer[3] == REFUSED:
            break
        assert answer[3] == 0


def put_off_for_a_week(scene: Scene) -> None:
    """12,000 messages that one client puts off for a week."""
    publisher = scene.client("p", 5)
    for number in range(scene.many(12_000)):
        topic = f"$delay/604800/t/{number}"
        publisher.send(publish_numbered(topic, b"x" * 30, number % 1_000 + 1, b""))
        answer = publisher.next()
        if len(answer) > 4 and answer[4] == REFUSED:
            return


def never_fetched(scene: Scene) -> None:
    """100,000 messages for twenty sessions on everything that nobody comes back for."""
    for number in range(20):
        gone = scene.attacker()
        gone.send(connect(f"gone-{number}", 5, FOR_EVER, flags=0))
        assert gone.next()[3] == 0
        gone.send(subscribe(["#"], 5, qos=1))
        assert gone.next()[0] == 0x90
        gone.close()
    publish_at_qos_1(scene, "hoard", scene.many(100_000))


ATTACKS: tuple[Attack, ...] = (sessions_for_ever, put_off_for_a_week, never_fetched)
