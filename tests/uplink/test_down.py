"""The way down: topics, rights, repeated messages, loops, and what finds no room."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.state.uplink_state import REMEMBERED, DownSeen
from gateway.uplink import down as down_module
from gateway.uplink.down import Down, DownRule
from gateway.uplink.envelope import has_hop, with_hop
from gateway.uplink.rules.targets import fill
from tests.support.disk.storage import Store, crash_image, open_store
from tests.support.table import table

RULES = (
    DownRule("tidegate/{gateway}/commands/#", "commands/{4+}"),
    DownRule("all/settings", "settings", may_write=lambda topic: topic != "settings"),
    DownRule("any/#", "{2+}"),
)


@dataclass
class Scene:
    """A way down whose broker is a list, and whose disk is as quick as `commit` is called."""

    store: Store
    seen: DownSeen
    code: ReasonCode = ReasonCode.SUCCESS
    published: list[Message] = field(default_factory=list)
    promises: list[Callable[[], None]] = field(default_factory=list)
    later: list[Callable[[], None]] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.down = Down(
            "barn",
            RULES,
            self.seen,
            self.store.counters,
            publish=self._publish,
            when_on_disk=self.promises.append,
            later=lambda _seconds, call: self.later.append(call),
            refusal=lambda: "it is full",
        )

    def receive(self, publish: Publish, *, resumed: bool = False) -> None:
        self.down.receive(
            publish, lambda: self.acknowledged.append(publish.packet_id), resumed=resumed
        )

    def commit(self) -> None:
        promises, self.promises[:] = list(self.promises), []
        for promise in promises:
            promise()

    def count(self, name: str) -> int:
        return self.store.counters.count(f"tidegate/uplink/{name}")

    def _publish(self, message: Message, forced: bool) -> ReasonCode:
        self.forced.append(forced)
        if self.code is ReasonCode.SUCCESS:
            self.published.append(message)
        return self.code


@pytest.fixture
async def scene(store: Store) -> Scene:
    seen = DownSeen(store.database, store.writer)
    await seen.load()
    return Scene(store, seen)


def _command(packet_id: int, payload: bytes = b"on", *, dup: bool = False) -> Publish:
    return Publish("tidegate/barn/commands/light/1", payload, 1, dup=dup, packet_id=packet_id)


async def test_a_message_is_published_and_acknowledged_once_on_disk(scene: Scene) -> None:
    properties = Properties(user_properties=(("a", "b"), ("hops", "north")), response_topic="r")
    publish = Publish(
        "tidegate/barn/commands/light/1", b"on", 1, True, packet_id=9, properties=properties
    )
    scene.receive(publish)
    [message] = scene.published
    assert (message.topic, message.payload, message.qos) == ("commands/light/1", b"on", 1)
    assert (message.retain, message.response_topic) == (True, "r")
    assert message.user_properties == (("hops", "north,barn"), ("a", "b"), ("hops", "north"))
    assert message.client_id == "$uplink"  # what the rules know it by
    assert not scene.acknowledged
    scene.commit()
    assert scene.acknowledged == [9]


@table(
    "said, carried",
    [
        ((), "barn"),
        ((("hops", ""),), "barn"),
        ((("hops", ""), ("hops", "barn")), "barn"),  # the second is a publisher's own
        ((("a", "b"), ("hops", "north,east"), ("hops", "barn")), "north,east,barn"),
        ((("hops", "barns"),), "barns,barn"),
        ((("hops", "barn"),), None),
        ((("a", "b"), ("hops", "north,barn")), None),
    ],
)
def test_the_first_hops_is_believed(said: tuple[tuple[str, str], ...], carried: str | None) -> None:
    assert has_hop(said, "barn") == (carried is None)
    if carried is not None:
        assert with_hop(said, "barn") == (("hops", carried), *said)


async def test_a_repeated_one_is_known_even_after_a_crash(scene: Scene, tmp_path: Path) -> None:
    scene.receive(_command(7))
    await scene.store.settle()
    store = await open_store(crash_image(scene.store.database.path.parent, tmp_path / "crashed"))
    seen = DownSeen(store.database, store.writer)
    await seen.load()
    again = Scene(store, seen)
    again.receive(_command(7, dup=True), resumed=True)
    again.commit()
    assert (again.published, again.acknowledged, again.count("down_repeated")) == ([], [7], 1)
    again.receive(_command(7), resumed=True)  # no repetition: another one under the same number
    again.receive(_command(8, dup=True), resumed=True)  # which never came here
    again.receive(_command(7, b"off", dup=True), resumed=True)
    again.receive(_command(7, b"off", dup=True), resumed=False)  # of a session that is new
    assert [message.payload for message in again.published] == [b"on", b"on", b"off", b"off"]
    await store.close()


async def test_what_finds_no_room_waits_in_order(scene: Scene) -> None:
    scene.code = ReasonCode.QUOTA_EXCEEDED
    scene.receive(_command(1, b"1"))
    scene.receive(_command(2, b"2"))
    scene.receive(_command(1, b"1", dup=True), resumed=True)
    assert len(scene.later) == 1
    scene.later.pop()()
    assert (scene.published, len(scene.later)) == ([], 1)
    scene.code = ReasonCode.SUCCESS
    scene.later.pop()()
    scene.commit()
    assert [message.payload for message in scene.published] == [b"1", b"2"]
    assert scene.acknowledged == [1, 2]


async def test_one_full_queue_does_not_keep_it_from_all_others(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.code = ReasonCode.QUOTA_EXCEEDED
    scene.receive(_command(1))
    for _ in range(down_module.ATTEMPTS_MAX):
        scene.later.pop()()
    assert scene.forced == [*[False] * down_module.ATTEMPTS_MAX, True], (
        "the last is refused as well"
    )
    scene.receive(_command(2))
    scene.code = ReasonCode.SUCCESS
    scene.later.pop()()
    scene.commit()
    assert (scene.forced[-2:], scene.acknowledged) == ([True, False], [1, 2])
    assert caplog.text.count("is delivered only to receivers with capacity") == 1


async def test_more_than_waits_stays_with_the_fleet(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(down_module, "MAXIMUM_WAITING", 1)
    scene.code = ReasonCode.QUOTA_EXCEEDED
    scene.receive(_command(1))
    scene.receive(_command(2))
    scene.code = ReasonCode.SUCCESS
    assert (scene.acknowledged, scene.down.fetch_again) == ([], False)
    scene.later.pop()()
    scene.commit()
    assert (scene.acknowledged, scene.down.fetch_again) == ([1], True)
    assert scene.count("down_deferred") == 1
    scene.receive(_command(3))
    assert scene.count("down_deferred") == 2, "it must not overtake the second"
    scene.receive(Publish("any/x", b"light"))
    assert scene.count("down_dropped") == 1
    scene.down.begin()
    scene.receive(_command(2, dup=True), resumed=True)
    scene.receive(_command(3, dup=True), resumed=True)
    scene.commit()
    assert (scene.acknowledged, scene.down.fetch_again) == ([1, 2, 3], False)


async def test_bytes_that_wait_are_bounded_too(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.code = ReasonCode.QUOTA_EXCEEDED
    for packet_id in range(1, 6):
        scene.receive(_command(packet_id, bytes(5 * 1024 * 1024)))
    assert scene.count("down_deferred") == 2
    assert "commands/light/1' came from the fleet and waits: it is full" in caplog.text
    assert caplog.text.count("its broker stores the others until then") == 1
    scene.later.pop()()
    assert caplog.text.count("came from the fleet and waits") == 1
    scene.code = ReasonCode.SUCCESS
    scene.later.pop()()
    scene.commit()
    assert (scene.acknowledged, scene.down.fetch_again) == ([1, 2, 3], True)
    scene.down.begin()
    scene.code = ReasonCode.QUOTA_EXCEEDED
    scene.receive(_command(9, bytes(20 * 1024 * 1024)))
    assert scene.count("down_deferred") == 2, "one may wait whatever its size"


@pytest.mark.parametrize(
    ("publish", "said"),
    [
        (
            Publish("all/settings", b"", 1, packet_id=1),
            "from the fleet may not be published as 'settings'",
        ),
        (Publish("other", b"", 1, packet_id=1), "no [[uplink.down]] matches it"),
        (
            Publish("any/$CONTROL/tidegate/uplink", b"pause", 1, packet_id=1),
            "may not be published as",
        ),
        (Publish("any", b"", 1, packet_id=1), "from the fleet may not be published as ''"),
        (
            Publish(
                "any/x",
                b"",
                1,
                packet_id=1,
                properties=Properties(user_properties=(("hops", "barn,north"),)),
            ),
            "a loop ends here",
        ),
    ],
)
async def test_what_may_not_come_down_is_dropped_and_said(
    scene: Scene, publish: Publish, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene.receive(publish)
    scene.commit()
    assert (scene.published, scene.acknowledged, scene.count("down_dropped")) == ([], [1], 1)
    assert said in caplog.text


async def test_a_refusal_for_good_and_qos_0_without_room_are_dropped(scene: Scene) -> None:
    scene.code = ReasonCode.NOT_AUTHORIZED
    scene.receive(_command(1))
    scene.code = ReasonCode.QUOTA_EXCEEDED
    scene.receive(Publish("any/x", b""))
    scene.commit()
    assert (scene.acknowledged, scene.count("down_dropped"), scene.later) == ([1, 0], 2, [])


async def test_as_many_are_remembered_as_may_be_unacknowledged(scene: Scene) -> None:
    for packet_id in range(1, REMEMBERED + 2):
        scene.receive(_command(packet_id))
    await scene.store.settle()
    again = DownSeen(scene.store.database, scene.store.writer)
    await again.load()
    scene.seen = again
    assert len(again._hashes) == REMEMBERED
    assert 1 not in again._hashes


@table(
    "template, topic, filled",
    [
        ("{topic}", "a/b", "a/b"),
        ("x/{gateway}/{2}", "a/b/c", "x/barn/b"),
        ("{2+}/{1}", "a/b/c", "b/c/a"),
        ("{3+}", "a/b", ""),
    ],
)
def test_places_are_filled(template: str, topic: str, filled: str) -> None:
    assert fill(template, "barn", topic) == filled


def test_the_figures_are_there_from_the_start() -> None:
    counters = Counters()
    Down(
        "barn",
        RULES,
        seen=None,  # type: ignore[arg-type]  # nothing comes
        counters=counters,
        publish=lambda _message, _forced: ReasonCode.SUCCESS,
        when_on_disk=lambda _: None,
        later=lambda _seconds, _call: None,
    )
    assert counters.values["tidegate/uplink/down"] == 0
