"""The configuration's bounds reach the outbox, and what gives messages up is said."""

from pathlib import Path

import pytest

from gateway.app.checks.warnings import drop_warnings
from gateway.app.uplink.outbox import outbox_settings
from gateway.config.configuration import Configuration
from gateway.config.load import load
from gateway.settings.outbox import Mode
from gateway.settings.when_full import WhenFull
from gateway.storage.outbox.bounds import OutboxSettings, Retention, StreamSettings

CONFIG = """
[outbox]
maximum_bytes = "64MiB"
maximum_messages = 100000
maximum_age = "7d"
when_full = "drop-lowest-priority"

[uplink]
[[uplink.rule]]
topic = "sensors/#"
[[uplink.rule]]
topic = "alarms/#"
stream = "alarms"
[[uplink.rule]]
topic = "state/#"
stream = "state"
[[uplink.rule]]
topic = "video/#"
stream = "video"

[[uplink.stream]]
name = "alarms"
priority = 9
maximum_bytes = 1048576

[[uplink.stream]]
name = "state"
mode = "latest"
maximum_age = "1h"

[[uplink.stream]]
name = "video"
priority = 1
maximum_messages = 50
when_full = "drop-oldest"
mode = "expire"
expire_after = "90s"
"""


def configuration(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    return load(path)


def test_every_bound_reaches_the_outbox(tmp_path: Path) -> None:
    newest = WhenFull.DROP_NEWEST
    settings = outbox_settings(configuration(tmp_path, CONFIG), ["main", "alarms"])
    assert settings == OutboxSettings(
        Retention(64 * 1024**2, 100_000, 7 * 86_400, WhenFull.DROP_LOWEST_PRIORITY),
        (
            StreamSettings("alarms", 9, Retention(maximum_bytes=1024**2, when_full=newest)),
            StreamSettings("state", 5, Retention(None, None, 3600, newest), Mode.LATEST),
            StreamSettings(
                "video",
                1,
                Retention(maximum_messages=50, when_full=WhenFull.DROP_OLDEST),
                Mode.EXPIRE,
                90,
            ),
            StreamSettings("main", retention=Retention(when_full=newest)),
        ),
    )


def test_without_a_word_the_fleet_alone_misses_what_has_no_room(tmp_path: Path) -> None:
    plain = configuration(tmp_path, "[uplink]")
    newest = WhenFull.DROP_NEWEST
    assert outbox_settings(plain, ["main"]) == OutboxSettings(
        Retention(maximum_bytes=1024**3, when_full=newest),
        (StreamSettings("main", retention=Retention(when_full=newest)),),
    )
    assert drop_warnings(plain) == []
    strict = configuration(tmp_path, "[uplink]\n[outbox]\nwhen_full = 'reject'")
    assert outbox_settings(strict, ["main"]) == OutboxSettings(
        Retention(maximum_bytes=1024**3), (StreamSettings("main"),)
    )


def test_what_gives_up_acknowledged_messages_is_said(tmp_path: Path) -> None:
    assert drop_warnings(configuration(tmp_path, CONFIG)) == [
        'outbox.when_full: "drop-lowest-priority" drops acknowledged messages when full',
        "outbox.maximum_age: acknowledged messages are dropped after 604800 s",
        "uplink.stream[1].maximum_age: acknowledged messages are dropped after 3600 s",
        'uplink.stream[1].mode: "latest" drops messages for newer ones of their topic',
        'uplink.stream[2].when_full: "drop-oldest" drops acknowledged messages when full',
        'uplink.stream[2].mode: "expire" drops messages after 90 s',
    ]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("drop-newest", []),
        (
            "drop-oldest",
            ['"drop-oldest" drops acknowledged messages of clients that are disconnected too long'],
        ),
        (
            "reject",
            ['"reject" refuses publishers while one disconnected client has a full queue'],
        ),
    ],
)
def test_what_full_queues_of_clients_do_is_said(
    tmp_path: Path, policy: str, said: list[str]
) -> None:
    found = drop_warnings(configuration(tmp_path, f"[broker]\nqueue_when_full = '{policy}'"))
    assert found == [f"broker.queue_when_full: {each}" for each in said]


@pytest.mark.parametrize("text", ["", "[outbox]\nwhen_full = 'drop-oldest'"])
def test_without_an_uplink_nothing_is_given_up(tmp_path: Path, text: str) -> None:
    assert drop_warnings(configuration(tmp_path, text)) == []
