"""A reload: one answer for everything, and nothing changed by a file with a mistake."""

import asyncio
import logging
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gateway.config.configuration import Configuration
from gateway.config.load import load
from tests.app.reload.conftest import Changing

pytestmark = pytest.mark.usefixtures("_levels")


@pytest.fixture
def _levels() -> Iterator[None]:
    """Leave the levels of the loggers as they were."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


async def test_one_answer_says_what_changed_and_what_needs_a_restart(changing: Changing) -> None:
    await changing.start('[log]\nlevel = "info"\n[gateway]\nid = "barn"\n')
    assert (await changing.reload())["counts"] == {"changed": 0, "restart": 0, "refused": 0}
    answer = await changing.reload('[log]\nlevel = "warning"\n[gateway]\nid = "shed"\n')
    assert answer["changed"] == [{"key": "log.level", "old": "info", "new": "warning"}]
    (restart,) = answer["restart"]
    assert (restart["key"], restart["old"], restart["new"]) == ("gateway.id", "barn", "shed")
    assert logging.getLogger().level == logging.WARNING
    again = await changing.reload()  # what needs a restart goes on to be told
    assert (again["changed"], again["restart"]) == ([], [restart])
    assert changing.gateway.configuration.gateway_id == "barn"
    events = await changing.operator.ask("events", kind="reload")
    texts = [each["text"] for each in events["rows"]]
    assert any("changed log.level; a restart is needed for gateway.id" in each for each in texts)


async def test_what_deserves_a_look_is_told_once(changing: Changing) -> None:
    uplink = f'[uplink]\ndirectory = "{changing.folder / "landing"}"\n'
    await changing.start(uplink)
    drops = uplink + '[outbox]\nwhen_full = "drop-oldest"\n'
    (warning,) = (await changing.reload(drops))["warnings"]
    assert warning.startswith('outbox.when_full: "drop-oldest" drops acknowledged messages')
    assert (await changing.reload(drops + "[log]\nserver = 'info'\n"))["warnings"] == []


async def test_a_file_with_a_mistake_changes_nothing(changing: Changing) -> None:
    await changing.start('[log]\nlevel = "info"\n')
    before = changing.gateway.configuration
    quiet = '[log]\nlevel = "error"\n'
    for text, said in (
        (quiet + "[brok", "not TOML"),
        (quiet + "[brocker]\n", "brocker"),
        (quiet + "colour = 1\n", "log.colour"),
        (quiet + "[broker]\nmaximum_inflight = 0\n", "broker.maximum_inflight = 0"),
        (quiet + '[uplink]\nurl = "mqtts://fleet"\nca_file = "none.pem"\n', "uplink.ca_file"),
        (quiet + '[[listener]]\nport = 1\nacl_file = "none"\n', "listener[1].acl_file"),
        (quiet + '[[serial]]\nport = "/dev/a"\n' * 2, "serial[1].name"),
        (quiet + "é", "not TOML"),
    ):
        answer = await changing.reload(text)
        assert said in answer["refused"][0]["error"], answer
        assert (answer["changed"], answer["restart"]) == ([], [])
        assert changing.gateway.configuration is before
    (alarm,) = (await changing.operator.ask("status"))["alarms"]
    assert (alarm["name"], "not TOML" in alarm["text"]) == ("configuration", True)
    assert (await changing.reload('[log]\nlevel = "info"\n'))["refused"] == []


async def test_what_cannot_be_read_is_refused(changing: Changing) -> None:
    await changing.start("")
    file = changing.file
    file.unlink()
    for make, undo, said in (
        (file.mkdir, file.rmdir, "Is a directory"),
        (partial(os.mkfifo, file), file.unlink, "no regular file"),
        (file.touch, file.unlink, "it is empty, and may be incomplete"),
        (partial(file.write_text, "# nothing\n"), file.unlink, ""),  # the defaults hold
        (partial(file.write_bytes, b"\xe9"), file.unlink, "not UTF-8 at byte 0"),
    ):
        make()
        answer = await changing.reload()
        assert said in (answer["refused"] or [{"error": ""}])[0]["error"], answer
        undo()
    (refusal,) = (await changing.reload())["refused"]
    assert refusal["error"] == f"{file}: No such file or directory"


async def test_reloads_at_one_time_come_one_after_the_other(changing: Changing) -> None:
    await changing.start("")
    reload = changing.gateway.parts.reload
    for _ in range(50):
        reload.signal()  # of many signals few become a reload
    answers = await asyncio.gather(*(reload.reload("test") for _ in range(20)))
    assert all(answer["refused"] == [] for answer in answers)
    reload.signal()
    await reload.close()


async def test_of_many_signals_the_last_is_heard(changing: Changing) -> None:
    await changing.start("")
    reload = changing.gateway.parts.reload
    for number in range(30):
        changing.write(f"[broker]\nmaximum_inflight = {number + 1}\n")
        reload.signal()
        await asyncio.sleep(0.001 * (number % 3))
    await reload.close()
    assert changing.gateway.broker.settings.maximum_inflight == 30


async def test_a_file_that_is_written_meanwhile_is_refused(
    changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await changing.start("")

    def written(file: Path) -> Configuration:
        with file.open("a") as more:
            more.write("# more\n")
        return load(file)

    monkeypatch.setattr("gateway.app.reload.reload.load", written)
    (refusal,) = (await changing.reload("[broker]\np2p = true\n"))["refused"]
    assert "written while it was read" in refusal["error"]


async def test_a_gateway_without_a_file_says_so(changing: Changing) -> None:
    await changing.start("")
    changing.gateway.read_again = None
    (refusal,) = (await changing.reload())["refused"]
    assert "without --config" in refusal["error"]


async def test_a_file_cut_short_anywhere_has_a_clear_answer(changing: Changing) -> None:
    text = '[log]\nlevel = "warning"\n[[channel]]\nname = "a"\nfilter = "é/#"\n'
    await changing.start("")
    before, whole = changing.gateway.configuration, (changing.listener + text).encode()
    refused = 0
    for end in range(len(changing.listener), len(whole), 3):
        changing.file.write_bytes(whole[:end])
        answer = await changing.reload()
        refused += bool(answer["refused"])
        if answer["refused"]:
            assert answer["refused"][0]["error"].startswith(str(changing.file))
            assert answer["changed"] == []
        else:  # a table or key less is a file as well
            await changing.reload("")
            assert changing.gateway.configuration == before
    assert refused > 10
    changing.file.write_bytes(b"\xef\xbb\xbf" + whole)
    assert {each["key"] for each in (await changing.reload())["changed"]} == {
        "log.level",
        "channel[0]",
    }
