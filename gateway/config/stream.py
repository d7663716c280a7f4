"""What must hold between the streams of a configuration, their keys, and the rules."""

from collections.abc import Collection, Sequence

from gateway.config.settings import StreamConfig

Mistake = tuple[str, object, str]


def find_stream_mistake(streams: Sequence[StreamConfig], used: Collection[str]) -> Mistake | None:
    """Return the first mistake as (place and key, value, what is allowed), None if there is none.

    `used` are the streams that rules put messages in.
    """
    names: set[str] = set()
    for place, stream in enumerate(streams):
        if stream.name in names:
            return f"[{place}].name", stream.name, "one table for each stream"
        if stream.name not in used:
            allowed = "a stream that a rule has; there are " + ", ".join(sorted(used))
            return f"[{place}].name", stream.name, allowed
        if (stream.mode == "expire") != (stream.expire_after > 0):
            allowed = 'a time such as "1h" with mode = "expire", and only with it'
            return f"[{place}].expire_after", stream.expire_after, allowed
        names.add(stream.name)
    return None
