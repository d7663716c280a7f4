"""Who may do what beside what a listener says: `[access]`."""

from gateway.settings.checks import boolean, text, texts
from gateway.settings.declaration import key, settings_class, tables


@settings_class
class RoleSettings:
    """A [role](access.md#roles), of at most 1,000.

    In its filters `%c` is the client identifier, `%u` the user name.
    """

    name: str = key(
        text,
        "name in `tidegate user check`",
    )
    users: tuple[str, ...] = key(
        texts,
        "user names, `*` for any characters",
        (),
    )
    anonymous: bool = key(
        boolean,
        "clients without a user name have the role",
        default=False,
    )
    read: tuple[str, ...] = key(
        texts,
        "filters to receive",
        (),
    )
    write: tuple[str, ...] = key(
        texts,
        "filters to publish",
        (),
    )
    readwrite: tuple[str, ...] = key(
        texts,
        "both",
        (),
    )
    deny: tuple[str, ...] = key(
        texts,
        "filters neither to receive nor to publish",
        (),
    )


@settings_class
class AccessSettings:
    """[Access](access.md) beside the `acl_file` of a listener."""

    operators: tuple[str, ...] = key(
        texts,
        "users who may [give commands and read the log](access.md#commands-and-the-log)",
        (),
    )
    roles: tuple[RoleSettings, ...] = tables(RoleSettings, name="role")
