"""What becomes of a port's telegrams: their values are published, damaged ones are counted."""

from collections.abc import Callable

from gateway.bridges.serial.telegram import Telegram, TelegramDecoder
from gateway.bridges.supervision.host import Host


class TelegramIntake:
    """Takes what a port delivers; all of it is of `node`, and of `instance` if there is one."""

    def __init__(
        self, node: str, host: Host, make: Callable[[], TelegramDecoder], instance: str = ""
    ) -> None:
        self._node = node
        self._host = host
        self._make = make
        self._instance = instance
        self._decoder = make()

    def restart(self) -> None:
        """Forget the half of a telegram that an unplugged port left."""
        self._decoder = self._make()

    def feed(self, data: bytes) -> None:
        """Take bytes as they arrived, in any pieces."""
        decoder = self._decoder
        for telegram in decoder.feed(data):
            self._publish(telegram)
        if decoder.failed:
            self._host.count("crc_errors", decoder.failed)
        if decoder.skipped:
            self._host.count("garbage_bytes", decoder.skipped)
        decoder.failed = decoder.skipped = 0

    def _publish(self, telegram: Telegram) -> None:
        self._host.count("telegrams")
        for each in telegram.values:
            self._host.read(
                *(self._node, each.quantity, each.value, each.unit, telegram.time),
                instance="-".join(filter(None, (self._instance, each.instance))),
                lossy=True,
            )
