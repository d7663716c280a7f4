"""The one error of the language: an invalid expression."""

from typing import Literal

from gateway.errors import TidegateError

ErrorKind = Literal["syntax", "limit"]


class WhereError(TidegateError):
    """An invalid expression (where-language 10).

    `position` counts code points from the start of the text as given, `kind` is `syntax` or
    `limit`, `message` says what was expected. As text it reads `$where:<position>: <message>`, the
    form of the Reason String (where-language 12.1).
    """

    def __init__(self, position: int, kind: ErrorKind, message: str) -> None:
        super().__init__(f"$where:{position}: {message}")
        self.position = position
        self.kind: ErrorKind = kind
        self.message = message
