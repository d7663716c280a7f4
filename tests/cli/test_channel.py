"""`tidegate channel` with a running gateway that is killed, and clients that others wrote."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import until

CHANNELS = """
[[channel]]
name = "jobs"
filter = "jobs/#"

[[channel]]
name = "live#tmp"
filter = "live/#"
"""

LAST_VALUES = """
[[channel]]
name = "twin"
filter = "state/#"
last_value = "payload.device"
"""

ORDER = ["2high", "4high", "1urgent", "5normal", "0low", "3low"]


def publish(gateway: GatewayProcess, topic: str, payload: str, *more: str) -> None:
    command = ["mosquitto_pub", "-p", str(gateway.port), "-q", "1", "-t", topic, "-m", payload]
    subprocess.run([*command, *more], check=True, timeout=20)


def consume(gateway: GatewayProcess, topic_filter: str, count: int) -> list[str]:
    command = ["mosquitto_sub", "-p", str(gateway.port), "-q", "1", "-t", topic_filter]
    command += ["-C", str(count), "-W", "60"]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=30
    ).stdout.split()


@pytest.mark.uncovered
def test_a_channel_keeps_its_messages_over_kills_and_can_be_looked_after(
    tmp_path: Path, tidegate: Command
) -> None:
    gateway = GatewayProcess(tmp_path, CHANNELS)
    gateway.start()
    try:
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        for payload in "abcd":
            publish(gateway, "jobs/x", payload)
        gateway.kill()
        gateway.start()
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        done = tidegate("channel", "list", *url)
        assert done.returncode == 0
        head, line = done.stdout.splitlines()
        assert head.split()[:3] == ["channel", "state", "kind"]
        assert line.split()[:6] == ["jobs", "open", "durable", "0", "4", "0"]
        assert consume(gateway, "$share/jobs/jobs/#", 4) == [*"abcd"]
        # mosquitto_sub may end before its last PUBACK: then that message has come back
        assert tidegate("channel", "empty", "jobs", *url).returncode == 0
        assert tidegate("channel", "pause", "jobs", *url).returncode == 0
        assert tidegate("channel", "pause", "--filter", "jobs/+", *url).returncode == 0
        publish(gateway, "jobs/x", "e")

        def is_told() -> bool:  # figures are said each second
            shown = json.loads(tidegate("channel", "stats", "jobs", "--json", *url).stdout)
            return (shown["state"], shown["depth"]) == ("paused", 1)

        until(is_told, "the message waits", gateway.log)
        gateway.kill()
        gateway.start()
        assert "channel jobs: paused before the start" in gateway.log()
        until(is_told, "it is paused still", gateway.log)
        listed = tidegate("channel", "list", *url).stdout
        assert listed.endswith("paused topic filters: jobs/+\n")
        assert tidegate("channel", "resume", "jobs", *url).returncode == 0
        assert tidegate("channel", "resume", "--filter", "jobs/+", *url).returncode == 0
        assert consume(gateway, "$share/jobs/jobs/#", 1) == ["e"]
        refused = tidegate("channel", "resume", "--filter", "jobs/+", *url)
        assert refused.returncode == 2
        assert "did not resume topic filter 'jobs/+': its log has the reason" in refused.stderr
        for words in (("empty", "--filter", "a"), ("pause", "jobs", "--filter", "a")):
            assert "--filter is for pause and resume" in tidegate("channel", *words, *url).stderr
        assert "kind            durable" in tidegate("channel", "stats", "jobs", *url).stdout
        assert tidegate("channel", "empty", "jobs", *url).returncode == 0

        def is_empty() -> bool:
            listed = json.loads(tidegate("channel", "list", "--json", *url).stdout)
            return bool(listed["jobs"]["depth"] == 0)

        until(is_empty, "the channel is empty", gateway.log)
        done = tidegate("channel", "pause", "other", *url)
        assert done.returncode == 2
        assert "there is no channel 'other'; there are: jobs" in done.stderr
        assert "needs the name of a channel" in tidegate("channel", "pause", *url).stderr
        assert (
            "takes no name: channel stats jobs" in tidegate("channel", "list", "jobs", *url).stderr
        )
        assert "jobs" in tidegate("channel", "list", url[-1]).stdout
        assert "jobs" in tidegate("channel", "stats", "jobs", url[-1]).stdout
        assert tidegate("channel", "delete", "jobs", *url).returncode == 0
        assert json.loads(tidegate("channel", "list", "--json", *url).stdout) == {}
    finally:
        gateway.kill()


def test_a_consumer_of_qos_0_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """Which is what `mosquitto_sub` is without options."""
    gateway = GatewayProcess(tmp_path, CHANNELS)
    gateway.start()
    try:
        publish(gateway, "jobs/x", "one")
        command = ["mosquitto_sub", "-V", "5", "-p", str(gateway.port), "-W", "60"]
        command += ["-t", "$share/jobs/jobs/#"]
        refused = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
        assert "denied" in refused.stderr
        assert not refused.stdout
        assert consume(gateway, "$share/jobs/jobs/#", 1) == ["one"]
    finally:
        gateway.stop()


@pytest.mark.uncovered
def test_a_channel_is_created_while_it_runs_and_is_there_after_a_kill(
    tmp_path: Path, tidegate: Command
) -> None:
    gateway = GatewayProcess(tmp_path, "")
    gateway.start()
    try:
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        create = ("channel", "create", "mail", "--filter", "mail/#")
        wrong = tidegate(*create, "--set", "max_attempt=3", *url)
        assert wrong.returncode == 2
        assert "did you mean max_attempts?" in wrong.stderr
        done = tidegate(*create, "--set", "max_attempts=3", "--set", "dead_letter_topic=dead", *url)
        assert done.stdout == "channel mail: create\n", done.stderr
        gateway.kill()
        gateway.start()
        publish(gateway, "mail/1", "one")
        assert consume(gateway, "$queue/mail", 1) == ["one"]
        refused = tidegate("channel", "create", "mail", "--filter", "other", *url)
        assert "did not create channel mail: its log has the reason" in refused.stderr
        assert "there is one with the filter mail/#" in gateway.log()
        assert tidegate("channel", "delete", "mail", *url).returncode == 0
        gateway.kill()
        gateway.start()
        assert json.loads(tidegate("channel", "list", "--json", *url).stdout) == {}
    finally:
        gateway.kill()


@pytest.mark.uncovered
def test_a_channel_has_priorities_over_a_kill(tmp_path: Path, tidegate: Command) -> None:
    gateway = GatewayProcess(tmp_path, "")
    gateway.start()
    try:
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        create = ("channel", "create", "jobs", "--filter", "jobs/#")
        wrong = tidegate(*create, "--set", "priority=$user. = 1", *url)
        assert "priority = '$user. = 1' is not allowed" in wrong.stderr
        keys = ("--set", "priority=$user.priority", "--set", "memory_messages=1")
        done = tidegate(*create, *keys, *url)
        assert done.stdout == "channel jobs: create\n", done.stderr
        for number, level in enumerate(("low", "urgent", "high", "low", "high", "normal")):
            property_ = ("-D", "publish", "user-property", "priority", level)
            publish(gateway, "jobs/x", f"{number}{level}", "-V", "5", *property_)

        def is_listed() -> bool:  # figures are published each second
            return "6 (2 high, 2 low)" in tidegate("channel", "list", *url).stdout

        until(is_listed, "the messages wait", gateway.log)
        gateway.kill()
        gateway.start()
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        until(is_listed, "they wait after the kill", gateway.log)
        shown = json.loads(tidegate("channel", "peek", "jobs", "--json", *url).stdout)
        assert [each["payload"] for each in shown] == ORDER
        assert consume(gateway, "$queue/jobs", 6) == ORDER
    finally:
        gateway.kill()


@pytest.mark.uncovered
def test_a_channel_has_the_last_value_of_each_key_over_kills(
    tmp_path: Path, tidegate: Command
) -> None:
    gateway = GatewayProcess(tmp_path, LAST_VALUES)
    gateway.start()
    try:
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        for device, value in ("a1", "b1", "a2", "c1"):
            publish(gateway, f"state/{device}", f'{{"device":"{device}","v":{value}}}')
        gateway.kill()
        gateway.start()
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        for device, value in ("b2", "a3"):
            publish(gateway, f"state/{device}", f'{{"device":"{device}","v":{value}}}')
        shown = json.loads(tidegate("channel", "peek", "twin", "--json", *url).stdout)
        found = [(each["payload"][11], each["payload"][-2]) for each in shown]
        assert sorted(found) == [("a", "3"), ("b", "2"), ("c", "1")]

        def is_counted() -> bool:  # figures are published each second
            counted = json.loads(tidegate("channel", "stats", "twin", "--json", *url).stdout)
            return (counted["depth"], counted["replaced"]) == (3, 2)

        until(is_counted, "two were replaced", gateway.log)
        came = consume(gateway, "$queue/twin", 3)
        assert came == [f'{{"device":"{device}","v":{value}}}' for device, value in found]
    finally:
        gateway.kill()


@pytest.mark.uncovered
def test_messages_are_shown_moved_and_driven_back(tmp_path: Path, tidegate: Command) -> None:
    dead = '[[channel]]\nname = "dead"\nfilter = "dead"\n'
    gateway = GatewayProcess(tmp_path, CHANNELS + dead)
    gateway.start()
    try:
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        for payload in "abc":
            publish(gateway, "jobs/x", payload)
        shown = tidegate("channel", "peek", "jobs", "-n", "2", *url).stdout
        assert [line.split()[-1] for line in shown.splitlines()] == ["payload", "a", "b"]
        moved = tidegate("channel", "move", "jobs", "--to", "dead", "-n", "2", *url)
        assert moved.stdout == "channel jobs: move of 2 messages; 1 wait there\n", moved.stderr
        back = tidegate("channel", "redrive", "dead", *url)
        assert back.stdout == "channel dead: redrive of 0 messages; 2 wait there\n"
        rows = json.loads(tidegate("channel", "peek", "dead", "--json", *url).stdout)
        assert [row["payload"] for row in rows] == ["a", "b"]
        assert "client" in tidegate("channel", "consumers", "jobs", *url).stdout
        assert "--to is the channel" in tidegate("channel", "move", "jobs", *url).stderr
        assert "--count is 0" in tidegate("channel", "peek", "jobs", "-n", "0", *url).stderr
        assert "no channel 'x'" in tidegate("channel", "peek", "x", *url).stderr
    finally:
        gateway.kill()
