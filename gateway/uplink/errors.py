"""Why a destination cannot take messages now."""

from gateway.errors import TidegateError


class LinkError(TidegateError):
    """The link is down, or did not come up; the text is what `uplink/error` shows.

    `lasting` says that only a change at the other end helps, so trying again soon is idle.
    """

    def __init__(self, text: str, *, lasting: bool = False) -> None:
        super().__init__(text)
        self.lasting = lasting
