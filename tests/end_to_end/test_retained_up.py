"""What is retained here comes to be retained at a fleet's Mosquitto that does not have it."""

from itertools import count
from pathlib import Path

import pytest

from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

GATEWAY = """
[gateway]
id = "barn"
{rest}
"""
UPLINK = """
[uplink]
url = "mqtt://127.0.0.1:{port}"
{keys}
"""
RULE = """
[[uplink.rule]]
topic = "{topic}"
target = "{{topic}}"
retain = true
"""
LATE = count()
HOUSE = RULE.format(topic="house/#")


def _config(port: int, *rules: str, keys: str = "") -> str:
    return GATEWAY.format(rest=UPLINK.format(port=port, keys=keys) + "".join(rules))


def _publish(gateway: GatewayProcess, *messages: tuple[str, bytes]) -> None:
    client = FleetCollector(gateway.port, "nothing", "local")
    for topic, payload in messages:
        client.publish(topic, payload, retain=True)
    client.close()


def _reload(gateway: GatewayProcess) -> None:
    done = tidegate("reload", "--url", f"mqtt://127.0.0.1:{gateway.port}")
    assert done.returncode == 0, done.stderr + gateway.log()


def _retained(fleet: Mosquitto, topic: str = "house/#") -> dict[str, bytes]:
    """Return what the fleet's broker retains by now."""
    late = FleetCollector(fleet.port, topic, f"late-{next(LATE)}")
    late.publish("end", b"")  # acknowledged behind what is retained
    late.close()
    return {each.topic: each.payload for each in late.received if each.retain}


def _until_retained(fleet: Mosquitto, gateway: GatewayProcess, wanted: dict[str, bytes]) -> None:
    until(lambda: _retained(fleet) == wanted, f"the fleet retains {wanted}", gateway.log)


def test_a_gateway_that_gets_its_uplink_later_brings_up_what_it_retains(
    tmp_path: Path, fleet: Mosquitto
) -> None:
    gateway = GatewayProcess(tmp_path, GATEWAY.format(rest="")).start()
    _publish(gateway, ("house/a", b"1"), ("house/b", b"2"), ("house/b", b""), ("else/c", b"3"))
    gateway.configure(_config(fleet.port, HOUSE))
    assert tidegate("reload", "--url", f"mqtt://127.0.0.1:{gateway.port}").returncode == 0, (
        gateway.log()
    )
    _until_retained(fleet, gateway, {"house/a": b"1"})
    assert not _retained(fleet, "else/#")
    gateway.kill()


def test_a_rule_that_a_reload_adds_brings_up_its_own_alone(
    tmp_path: Path, fleet: Mosquitto
) -> None:
    gateway = GatewayProcess(tmp_path, _config(fleet.port, HOUSE)).start()
    up = FleetCollector(fleet.port, "#", "up")
    _publish(gateway, ("house/a", b"1"), ("mill/b", b"2"))
    _until_retained(fleet, gateway, {"house/a": b"1"})
    gateway.configure(_config(fleet.port, HOUSE, RULE.format(topic="mill/#")))
    assert tidegate("reload", "--url", f"mqtt://127.0.0.1:{gateway.port}").returncode == 0, (
        gateway.log()
    )
    until(lambda: _retained(fleet, "mill/#") == {"mill/b": b"2"}, "the rule's is up", gateway.log)
    assert [each.payload for each in up.received if each.topic == "house/a"] == [b"1"]
    gateway.stop()
    gateway.start()
    _publish(gateway, ("house/last", b"3"))
    until(lambda: any(each.topic == "house/last" for each in up.received), "the last", gateway.log)
    assert [each.payload for each in up.received if each.topic == "mill/b"] == [b"2"]
    gateway.kill()
    up.close()


@pytest.mark.parametrize("keys", ["", "plain = true", 'plain = true\nmqtt = "3.1.1"'])
def test_a_fleet_that_lost_its_store_gets_what_is_retained_now(
    tmp_path: Path, fleet: Mosquitto, keys: str
) -> None:
    gateway = GatewayProcess(tmp_path, _config(fleet.port, HOUSE, keys=keys)).start()
    _publish(gateway, *((f"house/{number}", b"%d" % number) for number in range(300)))
    wanted = {f"house/{number}": b"%d" % number for number in range(300)}
    _until_retained(fleet, gateway, wanted)
    fleet.kill()
    (tmp_path / "mosquitto" / "mosquitto.db").unlink(missing_ok=True)
    _publish(gateway, ("house/7", b""), ("house/8", b"new"))
    fleet.start()
    del wanted["house/7"]
    _until_retained(fleet, gateway, wanted | {"house/8": b"new"})
    gateway.kill()


def test_it_is_brought_up_again_on_request(tmp_path: Path, fleet: Mosquitto) -> None:
    gateway = GatewayProcess(tmp_path, _config(fleet.port, HOUSE)).start()
    _publish(gateway, ("house/a", b"1"))
    _until_retained(fleet, gateway, {"house/a": b"1"})
    other = FleetCollector(fleet.port, "nothing", "other")
    other.publish("house/a", b"", retain=True)
    assert not _retained(fleet)
    done = tidegate("uplink", "retained", f"mqtt://127.0.0.1:{gateway.port}")
    assert done.returncode == 0, done.stderr
    _until_retained(fleet, gateway, {"house/a": b"1"})
    other.close()
    gateway.kill()


OWN = RULE.format(topic="house/#").replace('target = "{topic}"\n', "")
"""A rule whose topics at the fleet are this gateway's alone, so that they can be compared."""


@pytest.mark.parametrize("restart", [False, True])
def test_a_comparison_ends_with_its_link(tmp_path: Path, restart: bool) -> None:
    """Its subscription does not stay in the session at the fleet, whatever ends the link."""
    fleet = Mosquitto(tmp_path, "log_type all\n")
    fleet.start()

    def said(line: str) -> bool:
        return line in (tmp_path / "mosquitto" / "log").read_text()

    down = '[[uplink.down]]\ntopic = "commands/#"\nlocal = "{topic}"\n'
    gateway = GatewayProcess(tmp_path, _config(fleet.port, OWN, down)).start()
    until(lambda: "connected" in gateway.log(), "the link is up", gateway.log)
    url = f"mqtt://127.0.0.1:{gateway.port}"
    done = tidegate("uplink", "retained", url)
    assert done.returncode == 0, done.stderr
    until(lambda: said("tidegate-barn 0 tidegate/barn/data/#"), "it compares", gateway.log)
    assert not said("Received UNSUBSCRIBE")
    if restart:
        gateway.kill()
        gateway.start()
    else:
        for action in ("pause", "resume"):
            assert tidegate("uplink", action, url).returncode == 0
    until(lambda: said("Received UNSUBSCRIBE from tidegate-barn"), "it ends", gateway.log)
    gateway.kill()
    fleet.kill()


def test_a_comparison_takes_nothing_from_what_comes_down(tmp_path: Path, fleet: Mosquitto) -> None:
    down = '[[uplink.down]]\ntopic = "tidegate/barn/data/#"\nlocal = "came/{4+}"\n'
    gateway = GatewayProcess(tmp_path, _config(fleet.port, OWN, down)).start()
    local = FleetCollector(gateway.port, "came/#", "local")
    other = FleetCollector(fleet.port, "tidegate/barn/data/#", "other")
    _publish(gateway, ("house/a", b"1"))
    until(lambda: len(other.received) == 1, "it is up", gateway.log)
    other.publish("tidegate/barn/data/house/gone", b"left", retain=True)
    done = tidegate("uplink", "retained", f"mqtt://127.0.0.1:{gateway.port}")
    assert done.returncode == 0, done.stderr
    until(lambda: other.received[-1].payload == b"", "what is not here is cleared", gateway.log)
    other.publish("tidegate/barn/data/house/b", b"live", retain=True)
    until(lambda: any(each.payload == b"live" for each in local.received), "down", gateway.log)
    for each in (local, other):
        each.close()
    gateway.kill()


def test_what_waited_for_the_link_does_not_take_the_place_of_something_newer(
    tmp_path: Path, fleet: Mosquitto
) -> None:
    keys = "backlog_messages_per_second = 50"
    gateway = GatewayProcess(tmp_path, _config(fleet.port, HOUSE, keys=keys)).start()
    up = FleetCollector(fleet.port, "house/#", "up")
    _publish(gateway, ("house/a", b"first"))
    until(lambda: len(up.received) == 1, "it is up", gateway.log)
    fleet.save()
    fleet.kill()
    _publish(gateway, *(("house/a", b"%d" % number) for number in range(100)))
    fleet.start()
    until(lambda: len(up.received) > 3, "the backlog goes up", gateway.log)
    _publish(gateway, ("house/a", b"newest"))
    until(lambda: any(each.payload == b"99" for each in up.received), "all is up", gateway.log)
    payloads = [each.payload for each in up.received]
    assert payloads.index(b"newest") < payloads.index(b"99"), payloads
    assert _retained(fleet) == {"house/a": b"newest"}
    gateway.kill()
    up.close()


OWN_RULE = """
[[uplink.rule]]
topic = "house/#"
retain = true
where = "payload > 0"
{target}
"""


@pytest.mark.parametrize(
    ("target", "prefix"),
    [("", "tidegate/barn/data/"), ('target = "site/{gateway}/{topic}"', "site/barn/")],
)
def test_what_nothing_is_retained_of_any_more_is_cleared_on_request(
    tmp_path: Path, fleet: Mosquitto, target: str, prefix: str
) -> None:
    gateway = GatewayProcess(tmp_path, _config(fleet.port, OWN_RULE.format(target=target))).start()
    _publish(gateway, ("house/a", b"1"), ("house/small", b"-1"))
    here, other = f"{prefix}house/a", prefix.replace("barn", "mill") + "house/x"
    until(lambda: _retained(fleet, f"{prefix}#") == {here: b"1"}, "a is up", gateway.log)
    stale = FleetCollector(fleet.port, "nothing", "stale")
    for number in range(100):
        stale.publish(f"{prefix}house/gone/{number}", b"1", retain=True)
    for topic in (f"{prefix}mill/b", other):
        stale.publish(topic, b"1", retain=True)
    done = tidegate("uplink", "retained", f"mqtt://127.0.0.1:{gateway.port}")
    assert done.returncode == 0, done.stderr
    wanted = {here: b"1", f"{prefix}mill/b": b"1"}
    until(lambda: _retained(fleet, f"{prefix}#") == wanted, "the others are cleared", gateway.log)
    assert _retained(fleet, other) == {other: b"1"}
    stale.close()
    gateway.kill()
