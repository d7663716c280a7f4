"""What has to be the same in both brokers after every step."""

from collections import Counter

from gateway.session.inflight import MAXIMUM_BYTES
from gateway.settings.broker import MAXIMUM_QUEUED_MESSAGES
from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.judge import troubles
from tests.judge.disagreement import check
from tests.judge.judge import Judge, Request
from tests.judge.player import Player
from tests.judge.rights import MAIN, SECOND

OVERHEAD = 2_000
"""Bytes that a message may count in a window beside its payload."""


def agree(judge: Judge) -> None:
    """Raise DisagreementError unless everybody has what is owed, and all counts are the same."""
    broker, naive = judge.driver.broker, judge.naive
    check(
        set(broker.sessions) == naive.sessions.keys() | naive.wills.keys(),
        f"sessions {sorted(broker.sessions)}, not {sorted(naive.sessions)}",
    )
    for name, player in judge.players.items():
        if player.reads:
            check(not player.awaited, f"{name}: no answer to SUBSCRIBE or UNSUBSCRIBE")
            _has_all(judge, player)
        if name in naive.sessions:
            _is_held(judge, player)
    _channels_are_served(judge)
    _went_up(judge)
    _is_counted(judge)


def _channels_are_served(judge: Judge) -> None:
    """Nothing waits that a consumer which answers all that it gets could have.

    What one has been sent that reads nothing nobody knows.
    """
    sessions = judge.naive.sessions
    for channel in judge.naive.channels:
        channel.settle()
        consumers = [name for name, each in sessions.items() if channel.name in each.subscriptions]
        if any(not judge.players[name].reads and sessions[name].connected for name in consumers):
            continue
        for name in consumers:
            if judge.players[name].idle:
                topics = [each.topic for each in channel.waits]
                left = [topic for topic in topics if judge.naive.may_send(sessions[name], topic)]
                check(not left, f"{channel.name}: {len(left)} wait for {name}")


def _has_all(judge: Judge, player: Player) -> None:
    """Nothing is owed that there is room for."""
    session = judge.naive.sessions[player.name]
    missing = [copy for copy in session.owed if not judge.may_stay_out(player, copy)]
    if not missing:
        player.uncertain = False
        if player.answers:
            # what was optional comes no more, unless it may be held back
            session.owed = [copy for copy in session.owed if not judge.may_be_sent(player, copy)]
        return
    open_bytes = list(player.open.values())
    sizes = open_bytes + [len(copy.message.payload) for copy in session.owed]
    may_be_full = len(open_bytes) >= judge.limit(player) or (
        len(sizes) * (max(sizes) + OVERHEAD) >= MAXIMUM_BYTES
    )
    check(
        not player.answers and may_be_full,
        f"{player.name}: {len(missing)} did not come, the first "
        f"{missing[0].message.number} to {missing[0].message.topic} at QoS {missing[0].qos}",
    )


def _is_held(judge: Judge, player: Player) -> None:
    """The queue and the window have what was not acknowledged, and nothing else."""
    session, real = judge.naive.sessions[player.name], judge.driver.broker.sessions[player.name]
    owed, held = session.owed, len(player.held) + len(player.released)
    sure = [
        copy
        for copy in owed
        if not judge.may_stay_out(player, copy) and not copy.replay and (copy.qos or player.reads)
    ]
    choices = sum(
        1
        for choice in judge.naive.choices
        if choice.open and (choice.loose or player.name in choice.copies)
    )
    size = len(real.queue) + len(real.inflight)
    offered = sum(len(each.waits) for each in judge.naive.channels if not player.reads)
    most = held + len(owed) + choices + len(player.again) + offered
    check(
        held + len(sure) <= size <= most,
        f"{player.name}: {len(real.queue)} queued and {len(real.inflight)} in the window; "
        f"{len(sure)} to {len(owed)} are owed and {held} not acknowledged",
    )
    if player.link is None:
        check(real.connection is None, f"{player.name}: still connected")


def _is_counted(judge: Judge) -> None:
    broker, tally = judge.driver.broker, judge.driver.tally
    traffic = broker.traffic
    received, sent = broker.packets()
    found = {
        "messages received": (traffic.messages_received, tally.publishes_received),
        "bytes of payload received": (traffic.bytes_received, tally.payload_received),
        "bytes received": (traffic.network_received, tally.bytes_received),
        "packets received": (received, tally.packets_received),
    }
    if all(player.link is None or player.reads for player in judge.players.values()):
        found["packets sent"] = (sent, tally.packets_sent)
        found["messages sent"] = (traffic.messages_sent, tally.publishes_sent)
    for name, (theirs, ours) in found.items():
        check(theirs == ours, f"{name}: {theirs}, not {ours}")


def _went_up(judge: Judge) -> None:
    """The uplink has what was published, each as often, unless it was full."""
    if judge.uplink is not None:
        owed = Counter((each.topic, each.payload) for each in judge.naive.went_up)
        found = Counter(judge.uplink.taken)
        check(found == owed, f"went up: {found - owed} too often, {owed - found} too seldom")


def finish(judge: Judge) -> None:
    """Let everybody take what is owed to them, then leave: nothing may be left."""
    if judge.naive.uplink_is_full:
        troubles.fill_uplink(judge, full=False)
    if judge.naive.rights.restrict:
        troubles.reload(judge, {MAIN: None, SECOND: None})
    _let_all_come(judge)
    _empty_channels(judge)
    for due, _ in [*judge.naive.delayed, *judge.naive.wills.values()]:
        if due > judge.naive.now:
            judge.pass_time(due - judge.naive.now + 1)
    agree(judge)
    _is_empty(judge)
    _see_retained(judge)
    _routes_are_counted(judge)
    _let_all_go(judge)


def _let_all_come(judge: Judge) -> None:
    for name, player in judge.players.items():
        if player.link is not None and player.link.reads:
            player.answers = True
            player.release()
            judge.exchange()
        elif name in judge.naive.sessions:
            login = judge.naive.sessions[name].owner
            judge.connect(name, clean=False, will=None, login=login)
    judge.exchange()


def _empty_channels(judge: Judge) -> None:
    """Let somebody consume what nobody has fetched."""
    for channel in judge.naive.channels:
        if channel.waits:
            name = next(iter(judge.players))
            if name not in judge.naive.sessions:
                judge.connect(name, clean=False, will=None)
            judge.subscribe(name, [Request(channel.name, 1)])


def _is_empty(judge: Judge) -> None:
    left = [each for each in judge.naive.choices if not judge.shared.has_come(each, [])]
    # where queues are full, what a group was sent cannot be told from what its member was sent
    bounded = judge.driver.settings.maximum_queued_messages < MAXIMUM_QUEUED_MESSAGES
    check(
        bounded or not left, f"{len(left)} messages came to no member of their shared subscription"
    )
    for session in judge.driver.broker.sessions.values():
        check(not len(session.queue), f"{session.client_id}: {len(session.queue)} queued")
        check(not len(session.inflight), f"{session.client_id}: {len(session.inflight)} sent")


def _routes_are_counted(judge: Judge) -> None:
    routes = judge.driver.broker.admissions
    asked, routed = routes.hits + routes.misses, judge.routed
    # messages that came again are routed again, or not; a crash forgets what was counted
    check(
        judge.crashed or routed <= asked <= routed + judge.unrouted,
        f"{asked} hits and misses of routes, not {routed}",
    )


def _let_all_go(judge: Judge) -> None:
    for name, player in judge.players.items():
        known = judge.naive.sessions.get(name)
        login = None if known is None else known.owner
        judge.connect(name, clean=True, will=None, login=login)
        judge.say_goodbye(name)
        check(player.link is None, f"{name}: still there")
    memory = judge.driver.broker.queue_memory
    for figure in ("messages", "deliveries", "paged", "paged_bytes", "disk_bytes"):
        check(not getattr(memory, figure), f"{figure}: {getattr(memory, figure)} left")
    check(not memory.bytes, f"{memory.bytes} bytes of queue memory left")
    broker = judge.driver.broker
    persistent = sum(1 for session in broker.sessions.values() if session.persistent)
    counted = broker.shares.sessions.total
    check(counted == persistent, f"{counted} persistent sessions, not {persistent}")
    for share in (broker.shares.expressions, broker.shares.will_bytes):
        check(not share.total, f"{share.total} {share.what} left")


def _see_retained(judge: Judge) -> None:
    """Compare what a new subscriber of everything is sent."""
    link = judge.driver.open(wire.MQTT_5)
    link.say(wire.connect(wire.MQTT_5, "the-last"))
    link.say(wire.subscribe(wire.MQTT_5, 1, ("#", 0)))
    found = {read_publish(packet, wire.MQTT_5).topic for packet in link.inbox[2:]}
    kept = {
        topic.encode()
        for topic, message in judge.naive.retained.items()
        if message.expires > judge.naive.now
    }
    check(found == kept, f"retained: {sorted(found)}, not {sorted(kept)}")
    link.drop()
