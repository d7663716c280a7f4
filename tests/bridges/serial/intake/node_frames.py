"""Frames as a node sends them, and what it is answered."""

from node.frames import encode_reading, encode_readings

from gateway.bridges.serial.serial_frames import unstuff

TEMPERATURE = encode_reading("temperature", (215, -1), "°C")
HUMIDITY = encode_reading("humidity", 48, "%")
BOOT = 7


def frame(
    sequence: int = 1,
    *readings: bytes,
    node: str = "n1",
    boot: int = BOOT,
    age: int = 0,
    dropped: int = 0,
    wall: int | None = None,
    earlier: bool = False,
) -> bytes:
    return encode_readings(
        node, boot, sequence, 1500, age, dropped, wall, list(readings or (TEMPERATURE,)), earlier
    )


def statuses(answers: list[bytes]) -> list[tuple[int, int]]:
    """Return (sequence number, status) of each answer."""
    bodies = [unstuff(answer[1:-1])[:-4] for answer in answers]
    return [(int.from_bytes(body[7:11], "little"), body[2]) for body in bodies]
