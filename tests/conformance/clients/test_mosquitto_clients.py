"""mosquitto_pub and mosquitto_sub, with which people try a broker."""

import subprocess
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.requirements import find_program
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.mosquitto_clients

VERSIONS = ["mqttv31", "mqttv311", "mqttv5"]


class Subscriber:
    """mosquitto_sub, started and subscribed."""

    def __init__(self, port: int, *arguments: str) -> None:
        program = find_program("mosquitto_sub")
        assert program is not None
        # -d says when it is subscribed; stdbuf, since it writes to a pipe
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", program, "-p", str(port), "-d", "-F", "=%t %q %r %p", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.output: list[str] = []
        self._messages: deque[str] = deque()  # some come before the SUBACK
        while not self.line().startswith("Subscribed"):
            pass

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "".join(self.output)
        self.output.append(line)
        if line.startswith("="):
            self._messages.append(line[1:].rstrip("\n"))
        return line

    def message(self) -> str:
        """Return topic, QoS, retain flag and payload of the next message."""
        while not self._messages:
            self.line()
        return self._messages.popleft()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=SECONDS)


Subscribe = Callable[..., Subscriber]
PublishOnce = Callable[..., None]


@pytest.fixture
def subscribe(gateway: GatewayProcess) -> Iterator[Subscribe]:
    """Give a function that starts mosquitto_sub."""
    started: list[Subscriber] = []

    def start(*arguments: str) -> Subscriber:
        started.append(Subscriber(gateway.port, *arguments))
        return started[-1]

    yield start
    for subscriber in started:
        subscriber.close()


@pytest.fixture
def publish(gateway: GatewayProcess) -> PublishOnce:
    """Give a function that runs mosquitto_pub."""

    def run(*arguments: str) -> None:
        program = find_program("mosquitto_pub")
        assert program is not None
        done = subprocess.run(
            [program, "-p", str(gateway.port), *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    return run


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_a_message_in_each_qos(
    subscribe: Subscribe, publish: PublishOnce, topic: str, version: str, qos: str
) -> None:
    subscriber = subscribe("-V", version, "-t", f"{topic}/#", "-q", qos)
    publish("-V", version, "-t", f"{topic}/a", "-m", "21.5 °C", "-q", qos)
    assert subscriber.message() == f"{topic}/a {qos} 0 21.5 °C"


@pytest.mark.parametrize("version", VERSIONS)
def test_retained_and_cleared(
    subscribe: Subscribe, publish: PublishOnce, topic: str, version: str
) -> None:
    publish("-V", version, "-t", f"{topic}/a", "-m", "kept", "-r", "-q", "1")
    publish("-V", version, "-t", f"{topic}/b", "-m", "gone", "-r", "-q", "1")
    publish("-V", version, "-t", f"{topic}/b", "-n", "-r", "-q", "1")
    subscriber = subscribe("-V", version, "-t", f"{topic}/#")
    publish("-V", version, "-t", f"{topic}/c", "-m", "last")
    seen = {subscriber.message(), subscriber.message()}
    assert seen == {f"{topic}/a 0 1 kept", f"{topic}/c 0 0 last"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_that_lasts(
    subscribe: Subscribe, publish: PublishOnce, topic: str, version: str
) -> None:
    lasting = ["-V", version, "-i", topic, "-c", "-t", f"{topic}/#", "-q", "1"]
    if version == "mqttv5":
        lasting += ["-x", "60"]
    subscribe(*lasting).close()
    for number in range(3):
        publish("-V", version, "-t", f"{topic}/a", "-m", str(number), "-q", "1")
    again = subscribe(*lasting)
    assert sorted(again.message() for _ in range(3)) == [f"{topic}/a 1 0 {n}" for n in range(3)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_will(subscribe: Subscribe, topic: str, version: str) -> None:
    watcher = subscribe("-V", version, "-t", f"{topic}/#")
    leaver = subscribe(
        *("-V", version, "-t", f"{topic}-other", "--will-topic", f"{topic}/will"),
        *("--will-payload", "gone"),
    )
    leaver.close()  # a kill
    assert watcher.message() == f"{topic}/will 0 0 gone"


def test_where(subscribe: Subscribe, publish: PublishOnce, topic: str) -> None:
    subscriber = subscribe(
        *("-V", "mqttv5", "-t", f"{topic}/+"),
        *("-D", "subscribe", "user-property", "$where", "payload.value > 20 AND site = 'A'"),
    )
    for value, site in ((21, "B"), (19, "A"), (30, "A")):
        publish(
            *("-V", "mqttv5", "-t", f"{topic}/{value}", "-m", f'{{"value":{value}}}'),
            *("-D", "publish", "user-property", "site", site),
        )
    assert subscriber.message() == f'{topic}/30 0 0 {{"value":30}}'


def test_every(subscribe: Subscribe, publish: PublishOnce, topic: str) -> None:
    subscriber = subscribe(
        *("-V", "mqttv5", "-t", f"{topic}/+"),
        *("-D", "subscribe", "user-property", "$every", "600000"),
        *("-D", "subscribe", "user-property", "$where", "payload.value > 0"),
    )
    for place, value in (("a", 1), ("a", 2), ("b", 0), ("b", 3)):
        publish("-t", f"{topic}/{place}", "-m", f'{{"value":{value}}}')
    assert subscriber.message() == f'{topic}/a 0 0 {{"value":1}}'
    assert subscriber.message() == f'{topic}/b 0 0 {{"value":3}}'


def test_the_newest_comes_when_the_time_is_over(
    subscribe: Subscribe, gateway: GatewayProcess, topic: str
) -> None:
    subscriber = subscribe(
        *("-V", "mqttv5", "-t", topic), *("-D", "subscribe", "user-property", "$every", "500")
    )
    program = find_program("mosquitto_pub")
    assert program is not None
    subprocess.run(
        [program, "-p", str(gateway.port), "-t", topic, "-l"],
        input="".join(f"{number}\n" for number in range(1_000)),
        text=True,
        timeout=SECONDS,
        check=True,
    )
    came = [subscriber.message()]
    while not came[-1].endswith(" 999"):
        came.append(subscriber.message())
    assert came[0].endswith(" 0")
    assert len(came) < 100


def test_system_topics(subscribe: Subscribe) -> None:
    subscriber = subscribe("-t", "$SYS/broker/version")
    assert subscriber.message().startswith("$SYS/broker/version 0 1 tidegate ")
