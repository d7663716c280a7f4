"""How much the landing folder of the directory destination may keep, and for how long."""

from dataclasses import dataclass

DELETE, WAIT = "delete-oldest", "wait"


@dataclass(frozen=True, slots=True)
class LandingBounds:
    """Bytes of the disk and seconds of age, None for no bound, and the policy when it is full."""

    maximum_bytes: int | None = None
    maximum_age: int | None = None
    when_full: str = DELETE


NO_BOUNDS = LandingBounds()
