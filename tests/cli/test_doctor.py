import json
import os
import re
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import gateway.cli.doctor as doctor_module
from gateway.app.checks import findings
from gateway.app.checks.findings import Health, Installation, findings_of
from gateway.cli.doctor import alarms, counted, largest, links, places
from gateway.cli.main import main
from gateway.config.load import load
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.migrations.migrate import migrate
from gateway.storage.outbox.row import COLUMNS, to_columns
from gateway.storage.state.daily_writes import MS_OF_A_DAY, Written, note_written
from gateway.telemetry.block_device import BlockDevice, Mount
from tests.support.disk.storage import outbox_row
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import until


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder in /sys of a card of 32 GB, which every folder lies on."""
    folder = tmp_path / "mmcblk0"
    folder.mkdir()
    (folder / "size").write_text("62500000\n")
    (folder / "stat").write_text("0 " * 17)
    monkeypatch.setattr(findings, "block_device", lambda _: BlockDevice("mmcblk0", folder))
    return folder


def daily_writes(data: Path, *written: Written) -> None:
    connection = sqlite3.connect(data / "tidegate.db", isolation_level=None)
    migrate(connection)
    for day, more in enumerate(written, 20_000):
        note_written(connection.execute, day * MS_OF_A_DAY, more)
    connection.close()


def report(data: Path, config: str | None = None) -> list[tuple[Health, str]]:
    configuration = None
    if config is not None:
        (data / "gateway.toml").write_text(config)
        configuration = load(data / "gateway.toml")
    return [(each.health, each.text) for each in findings_of(Installation(data, configuration))]


def health_of(text: str, found: list[tuple[Health, str]]) -> Health:
    (health,) = [health for health, line in found if text in line]
    return health


def test_the_card_s_life_follows_from_what_was_written(tmp_path: Path, card: Path) -> None:
    assert card.exists()
    daily_writes(tmp_path, Written(10**8, 500, 43_200), Written(10**8, 500, 43_200))
    found = report(tmp_path)
    line = "mmcblk0 lasts 44 years at 200 MB and 1,000 commits a day (it bears 3.2 TB, estimated"
    assert health_of(line, found) is Health.OK


def test_a_card_that_will_not_last_is_told(tmp_path: Path, card: Path) -> None:
    assert card.exists()
    daily_writes(tmp_path, Written(10**10, 500, 86_400))
    found = report(tmp_path, '[storage]\nendurance = "3TB"\nwrite_budget = "200MB/day"\n')
    assert health_of("lasts 10 months at 10.0 GB and 500 commits", found) is Health.WARNING
    assert health_of("(it bears 3.0 TB, as configured)", found) is Health.WARNING
    assert health_of("above the write budget of 200 MB a day", found) is Health.WARNING


def test_a_rate_within_the_budget_is_well(tmp_path: Path, card: Path) -> None:
    assert card.exists()
    daily_writes(tmp_path, Written(10**7, 500, 86_400))
    found = report(tmp_path, '[storage]\nwrite_budget = "200MB/day"\n')
    assert health_of("within the write budget of 200 MB a day", found) is Health.OK


def test_too_short_a_run_says_nothing_of_a_day(tmp_path: Path, card: Path) -> None:
    assert card.exists()
    daily_writes(tmp_path, Written(10**7, 500, 599))
    assert health_of("too little was recorded", report(tmp_path)) is Health.NOTE


def damage_the_schema(path: Path) -> None:
    """Put a byte that is not UTF-8 into the statement of a table."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE meta (", b"CREATE TABLE meta \xff", 1))


def put_a_fifo_there(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def put_a_folder_there(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"no database" * 1000),
        damage_the_schema,
        put_a_fifo_there,
        put_a_folder_there,
    ],
    ids=["no database", "schema", "FIFO", "folder"],
)
def test_a_database_that_cannot_be_read_is_told(
    tmp_path: Path, card: Path, spoil: Callable[[Path], object]
) -> None:
    assert card.exists()
    daily_writes(tmp_path, Written(10**8, 500, 43_200))
    spoil(tmp_path / "tidegate.db")
    found = report(tmp_path, UPLINK)
    assert health_of("too little was recorded", found) is Health.NOTE
    assert health_of("the gateway's next start salvages what can be read", found) is Health.BAD


def test_a_log_beside_an_empty_database_stays(tmp_path: Path) -> None:
    (tmp_path / "tidegate.db").touch()
    log = tmp_path / "tidegate.db-wal"
    log.write_bytes(bytes(10_000))
    found = report(tmp_path, UPLINK)
    assert log.stat().st_size == 10_000
    assert health_of("it is empty beside its write-ahead log", found) is Health.BAD


def test_an_emmc_that_is_worn_is_told(tmp_path: Path, card: Path) -> None:
    (card / "device").mkdir()
    (card / "device" / "life_time").write_text("0x09 0x02\n")
    assert health_of("mmcblk0 says that 90 % of its life", report(tmp_path)) is Health.WARNING


def test_without_a_device_wear_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "block_device", lambda _: None)
    assert health_of("no block device", report(tmp_path)) is Health.NOTE


@pytest.mark.parametrize(
    ("kind", "options", "text", "health"),
    [
        ("ext4", {"rw", "noatime"}, "can be written to", Health.OK),
        ("ext4", {"ro", "noatime"}, "is read-only: nothing is stored", Health.BAD),
        ("tmpfs", {"rw"}, "is memory: a power cut loses everything", Health.BAD),
        ("ext4", {"rw"}, "with noatime: each read is a write now", Health.NOTE),
    ],
)
def test_the_file_system_must_keep_what_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    options: set[str],
    text: str,
    health: Health,
) -> None:
    mount = Mount(Path("/"), kind, "/dev/mmcblk0p2", frozenset(options))
    monkeypatch.setattr(findings, "mount_of", lambda _: mount)
    assert health_of(text, report(tmp_path)) is health


def test_a_folder_of_someone_else_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = report(tmp_path, f'[[serial]]\nport = "{tmp_path}"\n')
    assert health_of("cannot be written to by this user", found) is Health.BAD
    assert health_of("is it in the group dialout?", found) is Health.WARNING


def test_serial_ports_must_be_there(tmp_path: Path) -> None:
    config = f'[[serial]]\nport = "{tmp_path}"\n[[serial]]\nport = "{tmp_path}/ttyUSB9"\n'
    found = report(tmp_path, config)
    assert health_of(f"serial {tmp_path.name}: nothing is wrong", found) is Health.OK
    assert health_of("ttyUSB9 is not there: is the node plugged in?", found) is Health.WARNING


@pytest.mark.parametrize(("value", "health"), [("0x0\n", Health.OK), ("0x50000\n", Health.WARNING)])
def test_a_weak_power_supply_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, health: Health
) -> None:
    file = tmp_path / "get_throttled"
    file.write_text(value)
    monkeypatch.setattr(findings, "THROTTLED", file)
    text = "voltage" if health is Health.WARNING else "power supply"
    assert health_of(text, report(tmp_path)) is health


def test_few_descriptors_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 512))
    assert health_of("only 512 descriptors", report(tmp_path)) is Health.WARNING


def test_a_full_card_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        total, free = 32 * 10**9, 10**9

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage)
    assert (
        health_of("1.0 GB of 32.0 GB are free: free some space", report(tmp_path)) is Health.WARNING
    )


def test_damaged_databases_are_told(tmp_path: Path) -> None:
    name = "tidegate.db.corrupt-20261121T203000Z"
    for suffix in ("", "-wal"):
        (tmp_path / f"{name}{suffix}").write_bytes(b"")
    assert (
        health_of(f"{name}: a damaged database was set aside", report(tmp_path)) is Health.WARNING
    )


def test_the_command_prints_a_line_each_and_a_verdict(
    tmp_path: Path, card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert card.exists()
    daily_writes(tmp_path, Written(10**7, 500, 86_400))
    assert main(["doctor", "--data", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ok       tidegate.db: ") for line in lines)
    assert lines[-1].startswith("doctor: ")


def test_without_a_data_folder_something_is_bad(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--data", str(tmp_path / "none")]) == 1
    assert "does not exist: start the gateway once" in capsys.readouterr().out


NOBODY = 65_534


@pytest.fixture
def outside() -> Iterator[Path]:
    """Give a folder that every user may enter; those that pytest makes are its own user's."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


def test_another_user_is_told_what_it_may_not_read(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = outside / "data"
    data.mkdir()
    daily_writes(data, Written(10**8, 500, 43_200))
    real = os.getresuid()
    if 0 not in real:
        pytest.skip("needs root, to act as another user")
    for closed, named in ((data, "data/tidegate.db"), (outside, "data")):
        closed.chmod(0o700)
        os.setresuid(NOBODY, NOBODY, 0)
        try:
            code = main(["doctor", "--data", str(data)])
        finally:
            os.setresuid(*real)
        output = capsys.readouterr().out
        assert code == 1
        line = f"{outside / named} cannot be read, Permission denied: try it as root"
        assert output.count(line) == 1


UPLINK = """
[gateway]
id = "barn"
[outbox]
maximum_messages = 10
[uplink]
landing_maximum_bytes = "64MiB"
"""


@pytest.mark.parametrize(
    ("rows", "health", "text"),
    [
        (0, Health.OK, "outbox: 0 messages, 0 bytes, wait for the fleet"),
        (8, Health.WARNING, "it is nearly full"),
        (10, Health.BAD, "it is full: the fleet does not get new messages"),
    ],
)
def test_the_outbox_says_how_full_it_is(
    tmp_path: Path, rows: int, health: Health, text: str
) -> None:
    assert not [line for _, line in report(tmp_path, UPLINK) if line.startswith("outbox")]
    connection = sqlite3.connect(tmp_path / "tidegate.db", isolation_level=None)
    migrate(connection)
    insert = insert_statement("outbox", (*COLUMNS, "indexed"))
    for number in range(rows):
        row = outbox_row(number)
        row.id = number + 1
        connection.execute(insert, (*to_columns(row), 0))
    connection.close()
    assert health_of(text, report(tmp_path, UPLINK)) is health


@pytest.mark.parametrize(
    ("megabytes", "policy", "health", "text"),
    [
        (1, "wait", Health.OK, "landing: 1 files take 1.0 MB of 67.1 MB"),
        (60, "delete-oldest", Health.WARNING, "when it is full, the oldest are deleted"),
        (60, "wait", Health.WARNING, "when it is full, messages wait"),
        (70, "wait", Health.BAD, "it is full, messages wait in the outbox"),
    ],
)
def test_the_landing_folder_says_how_full_it_is(
    tmp_path: Path, megabytes: int, policy: str, health: Health, text: str
) -> None:
    folder = tmp_path / "landing" / "barn"
    folder.mkdir(parents=True)
    with (folder / "00a1b2c3d4.main.1-1.1.jsonl").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, megabytes * 1_000_000)
    found = report(tmp_path, f'{UPLINK}landing_when_full = "{policy}"\n')
    assert health_of(text, found) is health


def test_without_a_gateway_it_says_what_clients_may_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gateway.toml").write_text("[memory]\nlimit = '64MB'\n")
    main(["doctor", "--data", str(tmp_path), "--config", str(tmp_path / "gateway.toml")])
    limit = "memory: the limit is 64.0 MB for what clients hold (as configured)"
    assert limit in capsys.readouterr().out
    main(["doctor", "--data", str(tmp_path)])
    assert "for what clients hold (a share of this machine's memory)" in capsys.readouterr().out


@pytest.mark.slow
def test_a_running_gateway_is_asked_what_clients_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = GatewayProcess(tmp_path, "[memory]\nlimit = '16MiB'\n")
    config = f"[memory]\nlimit = '16MiB'\n[[listener]]\nport = {gateway.port}\n"
    (tmp_path / "doctor.toml").write_text(config)
    arguments = ["doctor", "--data", str(gateway.data), "--config", str(tmp_path / "doctor.toml")]
    gateway.start()
    try:
        assert gateway.process is not None
        until(lambda: gateway.listens() and (gateway.data / "lock").exists(), "it listens")
        main(arguments)
        output = capsys.readouterr().out
        assert f"memory: the gateway, process {gateway.process.pid}, occupies " in output
        assert re.search(r"^ok +memory: clients hold \S+ \w+ of \S+ MB$", output, re.MULTILINE)
    finally:
        gateway.kill()
    main(arguments)  # its number is in the folder still
    assert "process" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("closed", "health", "end"),
    [
        (0, Health.OK, "memory: clients hold 1.5 MB of 16.0 MB"),
        (1_200, Health.WARNING, "; 1,200 connections were closed for lack of it since the start"),
    ],
)
def test_connections_that_were_closed_for_want_of_memory(
    closed: int, health: Health, end: str
) -> None:
    found = counted(
        {"memory/limit": 16_000_000, "memory/bytes": 1_500_000, "memory/closed": closed}
    )
    assert found.health is health
    assert found.text.endswith(end)


def test_who_holds_most_of_what_there_is_much_of() -> None:
    kind = {"total": 30, "limit": 100, "holders": [["user 'u'", 20], ["a", 10]], "clients": []}
    few = {**kind, "total": 24}
    clients = {**kind, "clients": [["c", 9], ["d", 8]]}
    text = json.dumps({"sessions": kind, "delayed": few, "retained": clients})
    assert [each.text for each in largest(text)] == [
        "shares: sessions: 30 of 100; most have user 'u' 20, a 10",
        "shares: retained: 30 of 100; most have user 'u' 20, a 10, client 'c' 9",
    ]
    assert not list(largest("{}"))


def test_links_and_alarms_of_the_running_gateway() -> None:
    found = {
        "uplink/state": "disconnected",
        "uplink/error": "connection refused",
        "alarm/certificate": json.dumps({"raised": 1, "text": "it ends"}),
        "alarm/odd": "no JSON",
    }
    assert [(each.health, each.text) for each in (*links(found), *alarms(found))] == [
        (Health.BAD, "uplink: disconnected, connection refused"),
        (Health.BAD, "alarm certificate: it ends"),
        (Health.BAD, "alarm odd: no JSON"),
    ]
    several = {
        "uplink/state": "connected",
        "uplink/a/state": "connected",
        "uplink/b/state": "paused",
    }
    assert [(each.health, each.text) for each in links(several)] == [
        (Health.OK, "uplink a: connected"),
        (Health.BAD, "uplink b: paused"),
    ]
    assert not [*links({}), *alarms({})]


def test_certificates_and_their_days(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    long, short = authority.issue("a", days=90), authority.issue("b", days=5)
    ended = authority.issue("c", days=-3)
    text = "".join(
        f"[[listener]]\nport = {port}\n"
        f"tls_certificate = '{pair.certificate}'\ntls_key = '{pair.key}'\n"
        for port, pair in ((1, long), (2, short), (3, ended))
    )
    found = [each for each in report(tmp_path, text) if "tls_certificate" in each[1]]
    assert [health for health, _ in found] == [Health.OK, Health.WARNING, Health.BAD]
    assert "ends in 5 days: renew it" in found[1][1]
    assert "has ended 3 days ago" in found[2][1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_files_that_root_left_in_the_data_folder(tmp_path: Path) -> None:
    assert not [text for _, text in report(tmp_path) if "do not belong" in text]
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing/a.jsonl").touch()
    os.chown(tmp_path, 1234, 1234)
    assert not [text for _, text in report(tmp_path) if "do not belong" in text]  # no gateway's
    daily_writes(tmp_path)
    found = report(tmp_path)
    assert health_of("3 files in", found) is Health.BAD
    (text,) = [text for _, text in found if "do not belong" in text]
    assert text.endswith(f"chown -R 1234: {tmp_path}")


def test_it_examines_the_installed_service_unless_a_folder_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "var").mkdir()  # of another program: at / it is the system's
    service, config = tmp_path / "lib", tmp_path / "gateway.toml"
    monkeypatch.setattr(doctor_module, "INSTALLED", service)
    monkeypatch.setattr(doctor_module, "CONFIG", config)
    here = Path("var")
    assert places(None, None) == (here, None)
    service.mkdir()
    assert places(None, None) == (service, None)
    config.touch()
    assert places(None, None) == (service, config)
    assert places(tmp_path, None) == (tmp_path, None)
    (here / "tidegate.db").touch()
    assert places(None, None) == (here, None)
