"""Certificates that end soon are told of before they do."""

import shutil
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app import certificates as module
from gateway.app.certificates import DAY_SECONDS, certificate_warnings, certificates, spell_end
from gateway.config.configuration import Configuration
from gateway.config.load import load
from gateway.settings.listener import ListenerSettings
from gateway.settings.uplink import UplinkSettings
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority


def test_each_file_is_named_once_with_its_days(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("barn", days=30)
    configuration = Configuration(
        "file",
        "id",
        listeners=(
            ListenerSettings(tls_certificate=pair.certificate, tls_key=pair.key),
            ListenerSettings(port=2, tls_certificate=pair.certificate, tls_key=pair.key),
        ),
        uplinks=(UplinkSettings(urls=("mqtts://fleet",), ca_file=authority.ca_file),),
    )
    now = time.time()
    found = {each.key: round(each.days) for each in certificates(configuration, now)}
    assert found == {"listener[0].tls_certificate": 30, "uplink[0].ca_file": 1}
    later = [spell_end(each) for each in certificates(configuration, now + 40 * DAY_SECONDS)]
    assert later == [
        f"listener[0].tls_certificate: {pair.certificate} has ended 10 days ago",
        f"uplink[0].ca_file: {authority.ca_file} has ended 39 days ago",
    ]
    # `tidegate check` says those that have to be renewed
    (warning,) = certificate_warnings(configuration, now)
    assert warning.startswith(f"uplink[0].ca_file: {authority.ca_file} ends in 1 days: renew it")


async def test_the_alarm_ends_once_the_file_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INTERVAL", 0.01)
    authority = Authority(tmp_path)
    old, new = authority.issue("barn", days=10), authority.issue("barn", days=90)
    file, shown = tmp_path / "gateway.toml", tmp_path / "barn.pem"
    shutil.copy(old.certificate, shown)
    file.write_text(
        f"[[listener]]\nport = {free_port()}\ntls_certificate = '{shown}'\ntls_key = '{old.key}'\n"
    )
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        alarms: dict[str, str] = {}
        await gateway.start(durable=False)
        gateway.alarm.publish(alarms.__setitem__)
        text = f"listener[0].tls_certificate: {shown} ends in 10 days"
        await until(lambda: alarms.get("certificate") == text)
        shutil.copy(new.certificate, shown)
        await until(lambda: alarms["certificate"] == "")


def test_a_credential_that_only_the_service_is_given_is_left_out() -> None:
    listener = ListenerSettings(tls_certificate="credential:barn", tls_key="credential:key")
    assert not list(certificates(Configuration("file", "id", listeners=(listener,)), 0.0))
