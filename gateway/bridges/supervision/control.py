"""What can be written, and how a person is offered it: a switch, a number, a choice, a button."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Control:
    """What is published to `<topic of the series>/set` is written.

    `platform` is Home Assistant's: `switch` takes `on` and `off`, `number` a number from `minimum`
    to `maximum` by `step`, `select` one of `options`, and `button` `press`.
    """

    platform: str
    minimum: float = 0.0
    maximum: float = 0.0
    step: float = 1.0
    unit: str | None = None
    options: tuple[str, ...] = ()


SWITCH = Control("switch")
BUTTON = Control("button")
