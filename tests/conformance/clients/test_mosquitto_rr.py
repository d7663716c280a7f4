"""mosquitto_rr: a request and its answer, as a program of another maker does it."""

import subprocess

import pytest

from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.conformance.support.peer import SECONDS, Peers
from tests.conformance.support.statements import keeps
from tests.support.requirements import find_program

pytestmark = pytest.mark.mosquitto_clients

VERSIONS = {wire.MQTT_3_1_1: "mqttv311", wire.MQTT_5: "mqttv5"}


@keeps("5:3.3.2-15", "5:3.3.2-16", "3.1.1:4.5.0-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_request_is_answered(peers: Peers, version: int, topic: str, qos: int) -> None:
    server = peers.connect(version).subscribe((f"{topic}/request", 0))
    program = find_program("mosquitto_rr")
    assert program is not None
    arguments = [
        *("-p", str(peers.port), "-V", VERSIONS[version], "-q", str(qos), "-W", str(int(SECONDS))),
        *("-t", f"{topic}/request", "-e", f"{topic}/answer", "-m", "how warm?"),
    ]
    with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE) as client:
        request = read_publish(server.receive(), version)
        assert request.payload == b"how warm?"
        properties, answers = b"", f"{topic}/answer"
        if version == wire.MQTT_5:
            found = dict(request.properties)
            response_topic, data = found[wire.RESPONSE_TOPIC], found.get(wire.CORRELATION_DATA)
            assert response_topic == answers.encode()
            if isinstance(data, bytes):
                properties = wire.text_property(wire.CORRELATION_DATA, data)
        server.publish(answers, b"21.5", qos, properties=properties)
        output, _ = client.communicate(timeout=SECONDS)
    assert (client.returncode, output) == (0, b"21.5\n")
