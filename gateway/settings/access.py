"""Who may do what beside what a listener says: `[access]`."""

from gateway.settings.checks import boolean, text, texts
from gateway.settings.declaration import key, settings_class, tables


@settings_class
class RoleSettings:
    """A [role](access.md#roles): what some users may read and write. At most 1000 of them.

    In the topic filters `%c` stands for the client identifier and `%u` for the user name.
    """

    name: str = key(
        text,
        "its name in `tidegate user check`",
    )
    users: tuple[str, ...] = key(
        texts,
        "the user names that have the role; `*` stands for any characters",
        (),
    )
    anonymous: bool = key(
        boolean,
        "clients without a user name have the role",
        default=False,
    )
    read: tuple[str, ...] = key(
        texts,
        "topic filters that may be received",
        (),
    )
    write: tuple[str, ...] = key(
        texts,
        "topic filters that may be published to",
        (),
    )
    readwrite: tuple[str, ...] = key(
        texts,
        "topic filters of both",
        (),
    )
    deny: tuple[str, ...] = key(
        texts,
        "topic filters of neither, whatever else is granted",
        (),
    )


@settings_class
class AccessSettings:
    """[Access](access.md) beside the `acl_file` of a listener."""

    operators: tuple[str, ...] = key(
        texts,
        "users who may publish to `$CONTROL/tidegate/#` and read the log [from "
        "anywhere](access.md#commands-and-the-log)",
        (),
    )
    roles: tuple[RoleSettings, ...] = tables(RoleSettings, name="role")
