"""What a fuzzer begins with: every packet of the tests' tables, by the target's own framing."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.fuzz.streams import CONNECTS, PACKETS
from tests.support.where.vectors import where_vectors

VERSIONS = (3, 4, 5)

SUBSCRIBE = {5: "82 07 00 02 00 00 01 74 02", 4: "82 06 00 01 00 01 74 02"}
UNSUBSCRIBE = {5: "a2 06 00 04 00 00 01 74", 4: "a2 05 00 04 00 01 74"}


def conversation(version: int) -> bytes:
    """Return what a client says in a whole life, so that mutants find their way into the broker."""
    said = (
        SUBSCRIBE[max(version, 4)],
        "35 06 00 01 74 00 03 00",  # PUBLISH at QoS 2 with RETAIN
        "62 02 00 03 50 02 00 01 70 02 00 01 40 02 00 02",  # PUBREL, PUBREC, PUBCOMP, PUBACK
        UNSUBSCRIBE[max(version, 4)],
        "c0 00 e0 00",  # PINGREQ, DISCONNECT
    )
    return bytes.fromhex("".join(said))


def seeds_of_decoder() -> Iterator[bytes]:
    """Yield the place of a version in the target's list, a first byte and a body."""
    for place, _ in enumerate(VERSIONS, 1):
        for packet in PACKETS:
            yield bytes([place]) + packet[:1] + packet[2:]


def seeds_of_broker() -> Iterator[bytes]:
    """Yield a size of the pieces in which bytes arrive, and the bytes of a whole connection."""
    for version in VERSIONS:
        yield b"\x07" + CONNECTS[version][0] + conversation(version)
        for packet in PACKETS:
            yield b"\x07" + CONNECTS[version][0] + packet


def seeds_of_where() -> Iterator[bytes]:
    """Yield an expression, a zero byte and a payload."""
    for row in (*where_vectors(), *where_vectors("where-vectors-uplink.jsonl")):
        messages = row.get("messages", [row["message"]] if "message" in row else [])
        for message in messages[:1] or [{}]:
            yield row["expr"].encode() + b"\0" + message.get("payload", "").encode()


def write(seeds: Iterable[bytes], folder: Path) -> None:
    """Write each seed into a file of its own; what a fuzzer found there before stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)
