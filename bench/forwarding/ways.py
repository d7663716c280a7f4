"""The gateways that are compared, and the fleet's broker: how each is configured."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.harness.brokers import (
    Broker,
    Keeping,
    configured,
    mosquitto_program,
    tidegate,
)
from tests.support.processes.certificates import Pair

LINKS = ("mqtt", "mqtts", "directory")

_FLEET = """\
listener {port} 127.0.0.1
allow_anonymous true
listener {tls_port} 127.0.0.1
allow_anonymous true
certfile {pair.certificate}
keyfile {pair.key}
max_queued_messages 0
queue_qos0_messages true
persistence true
persistence_location {folder}/
user root
"""
_BRIDGE = """\
listener {port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {folder}/
max_queued_messages 0
connection up
address 127.0.0.1:{to}
topic # out 1 "" up/
cleansession false
try_private true
restart_timeout 1
"""
_GATEWAY = """\
[[listener]]
host = "127.0.0.1"

[gateway]
id = "bench"

[uplink]
{to}

[[uplink.rule]]
topic = "#"
"""


@dataclass(frozen=True, slots=True)
class FleetAt:
    """Where the fleet's broker listens, and whom a client of its TLS listener trusts."""

    port: int
    tls_port: int
    ca_file: str


def fleet(tls_port: int, pair: Pair) -> Broker:
    """Return the fleet's broker: a Mosquitto that also listens for TLS on `tls_port`."""

    def command(port: int, folder: Path, _: Keeping) -> list[str]:
        file = folder / "fleet.conf"
        text = _FLEET.format(port=port, tls_port=tls_port, pair=pair, folder=folder)
        file.write_text(text, encoding="utf-8")
        return [mosquitto_program(), "-c", str(file)]

    return Broker("fleet", command)


def bridge(link: str, at: FleetAt) -> Broker:
    """Return a Mosquitto that forwards everything to the fleet by this link."""
    secure = link == "mqtts"
    text = _BRIDGE + (f"bridge_cafile {at.ca_file}\nbridge_insecure true\n" if secure else "")

    def command(port: int, folder: Path, _: Keeping) -> list[str]:
        file = folder / "bridge.conf"
        to = at.tls_port if secure else at.port
        file.write_text(text.format(port=port, folder=folder, to=to), encoding="utf-8")
        return [mosquitto_program(), "-c", str(file)]

    return Broker("Mosquitto's bridge", command)


def relay(at: FleetAt) -> Broker:
    """Return the program that only copies, in plain Python: no gateway in Python can be cheaper."""

    def command(port: int, _folder: Path, _: Keeping) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("relay.py")), str(port), str(at.port)]

    return Broker("Python alone", command)


def gateway(name: str, package: Path, link: str, at: FleetAt) -> Broker:
    """Return a gateway with stock settings whose uplink takes everything by this link."""
    if link == "mqtt":
        to = f'url = "mqtt://127.0.0.1:{at.port}"'
    elif link == "mqtts":
        to = f'url = "mqtts://localhost:{at.tls_port}"\nca_file = "{at.ca_file}"'
    else:
        to = 'landing_maximum_bytes = "4GiB"'
    return configured(tidegate(name, package), _GATEWAY.format(to=to))
