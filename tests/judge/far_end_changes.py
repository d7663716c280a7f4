"""What may happen to outbox, landing folder and ledger, by the words of `pairs.CHANGES`."""

from collections.abc import Awaitable, Callable

from tests.judge.far_end import REFUSALS, FarEnd
from tests.support.disk.storage import until

Change = Callable[[FarEnd], Awaitable[None]]


async def restart(end: FarEnd) -> None:
    await end.crash()


async def restart_while_the_disk_refuses(end: FarEnd) -> None:
    await end.refuse(REFUSALS[0])
    end.accept(2)  # which nobody was promised
    await until(lambda: end.refused > 0)
    await end.crash()


async def refuse(end: FarEnd) -> None:
    for text in REFUSALS:
        await end.refuse(text)
        names = end.accept(2)
        await end.take_again()
        await end.acknowledge(names)


async def lose_link(end: FarEnd) -> None:
    await end.lose_link()
    await end.acknowledge(end.accept(2))


async def pause(end: FarEnd) -> None:
    await end.pause()
    await end.acknowledge(end.accept(2))


async def pause_and_restart(end: FarEnd) -> None:
    await end.pause()
    names = end.accept(2)
    await end.acknowledge(names)
    await end.crash()


FAR_CHANGES: dict[str, list[Change]] = {
    "a restart": [restart, restart_while_the_disk_refuses],
    "a disk that refuses": [refuse],
    "a link lost": [lose_link],
    "an uplink paused": [pause, pause_and_restart],
}

FAR_HOLDERS = ("the outbox", "the landing folder", "the ledger")
OF_SESSIONS = (
    "rows, lines and numbers are the gateway's own: they belong to no client's session, and their "
    "publisher's rights are asked when it publishes"
)
CANNOT_APPLY = {
    "a take-over by the same user": OF_SESSIONS,
    "a take-over by another user": OF_SESSIONS,
    "a take-over that another user begins anew": OF_SESSIONS,
    "a take-over by a stricter listener": OF_SESSIONS,
    "rights taken": OF_SESSIONS,
    "the same rules read again": OF_SESSIONS,
    "rights taken and given back": OF_SESSIONS,
    "session expiry": OF_SESSIONS,
}
"""Why other changes touch none of the holders behind the broker."""
