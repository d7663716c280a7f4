"""An edited rule in the configuration file: everything else stays as it is, byte for byte."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.app.query.rule_edit import RuleChange
from gateway.cli import file_edit
from gateway.cli.rule_file import BY_HAND, write_rule
from gateway.config.errors import ConfigurationError
from gateway.errors import TidegateError
from tests.support.table import table

FILE = """\
# the barn's gateway
[gateway]
id = "barn"   # its name

[uplink]   # the fleet
directory = "landing"

# what goes up
[[uplink.rule]]
topic = "sensors/#"   # all of them
where = "payload.value > 20"  # warm ones

# orders, too
[[uplink.rule]]
topic = "orders/#"

# what waits
[outbox]
maximum_messages = 1000  # few
"""

WARM = """\
topic = "sensors/#"   # all of them
where = "payload.value > 20"  # warm ones
"""

ORDERS = """\
# orders, too
[[uplink.rule]]
topic = "orders/#"
"""

NEW = """
[[uplink.rule]]
topic = "new/#"
"""

SEVERAL = """\
[[uplink]]
name = "cloud"
url = "mqtt://cloud.example"
[[uplink.rule]]
topic = "a"

[[uplink]]
name = "plant"
url = "mqtt://plant.example"
# the end
"""

INLINE = 'uplink.directory = "l"\nuplink.rule = [{topic = "a"}, {topic = "b"}] # both\n'

UNTIDY = """\
[uplink]
directory = "l"
[[uplink.rule]]
topic = "a"
[outbox]
maximum_messages = 1000
[[uplink.stream]]
name = "main"
"""


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def edit(rule: str | None = None, uplink: str | None = None, **more: Any) -> RuleChange:
    return RuleChange(uplink, rule, **more)


@table(
    "before, change, old, new",
    [
        # a key is changed where it stands, and the comment behind it stays
        (FILE, edit("0", set={"where": "payload.value > 60"}), "value > 20", "value > 60"),
        (
            FILE,
            edit("0", set={"where": 'payload.unit = "C"'}),
            '"payload.value > 20"',
            """'payload.unit = "C"'""",
        ),
        # a new key stands behind the others of its rule, before the comments of what follows
        (
            FILE,
            edit("0", set={"qos": 0, "lane": "backlog"}),
            WARM,
            f'{WARM}qos = 0\nlane = "backlog"\n',
        ),
        (FILE, edit("1", set={"where": "TRUE"}), ORDERS, f'{ORDERS}where = "TRUE"\n'),
        (FILE, edit("0", set={"where": None}), 'where = "payload.value > 20"  # warm ones\n', ""),
        # a new rule, at the end, before another, where there is none yet
        (FILE, edit(set={"topic": "new/#"}), ORDERS, ORDERS + NEW),
        (
            FILE,
            edit(set={"topic": "new/#"}, at=0),
            f"[[uplink.rule]]\n{WARM}",
            f"{NEW[1:]}\n[[uplink.rule]]\n{WARM}",
        ),
        # a rule goes, and the comments of what follows stay
        (FILE, edit("0", remove=True), f"[[uplink.rule]]\n{WARM}\n", ""),
        (FILE, edit("1", remove=True), '[[uplink.rule]]\ntopic = "orders/#"\n\n', "\n"),
        (FILE.replace(ORDERS, ""), edit("0", remove=True), f"[[uplink.rule]]\n{WARM}", ""),
        (
            FILE.replace("# warm ones", "# warm ones\n# or less"),
            edit("0", remove=True),
            f"[[uplink.rule]]\n{WARM}# or less\n\n",
            "# or less\n\n",
        ),
        # several uplinks
        (SEVERAL, edit("0", "cloud", set={"where": "TRUE"}), '"a"\n', '"a"\nwhere = "TRUE"\n'),
        (SEVERAL, edit("0", "0", set={"topic": "b"}), '"a"', '"b"'),
        (SEVERAL, edit(None, "plant", set={"topic": "new/#"}), "# the end\n", f"# the end\n{NEW}"),
        # other ways to write them
        (INLINE, edit("1", set={"topic": "c"}), '"b"', '"c"'),
        (INLINE, edit(set={"topic": "c"}), '{topic = "b"}', '{topic = "b"}, {topic = "c"}'),
        (UNTIDY, edit("0", set={"topic": "b"}), '"a"', '"b"'),
    ],
)
def test_only_the_rule_is_other(
    tmp_path: Path, before: str, change: RuleChange, old: str, new: str
) -> None:
    file = tmp_path / "gateway.toml"
    assert before.count(old) == 1
    for each in (before, before.replace("\n", "\r\n")):
        ending = "\r\n" if "\r\n" in each else "\n"
        file.write_bytes(each.encode())
        write_rule(file, change)
        assert file.read_bytes().decode() == before.replace(old, new).replace("\n", ending)


def test_the_rule_that_nobody_wrote_is_written(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[uplink]\ndirectory = "l"\n\n[outbox]\nmaximum_messages = 1000\n')
    edited, lines = write_rule(file, edit("0", set={"where": "TRUE"}))
    assert edited.old is not None
    assert edited.new is not None
    assert (edited.old.placed.key, edited.new.placed.key) == ("", "uplink.rule[0]")
    assert '[[uplink.rule]]\ntopic = "sensors/#"\nwhere = "TRUE"\n' in file.read_text()
    assert all(line.startswith("+") for line in lines)
    name = edited.new.name
    write_rule(file, edit(name, set={"where": "FALSE"}))
    with pytest.raises(TidegateError, match="is not allowed: the number or name of a rule"):
        write_rule(file, edit(name, set={"where": "TRUE"}))  # it is another rule by now


def test_mode_and_links_stay_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    file, link = tmp_path / "etc" / "gateway.toml", tmp_path / "link.toml"
    file.write_text(FILE)
    file.chmod(0o604)
    link.symlink_to(file)
    if os.geteuid() == 0:
        os.chown(file, 1, 2)
    before = file.stat()
    _, lines = write_rule(link, edit("0", set={"qos": 0}))
    after = file.stat()
    assert lines == ["+qos = 0"]
    assert link.is_symlink()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        *(before.st_mode, before.st_uid, before.st_gid),
    )
    assert after.st_ino != before.st_ino
    assert names(file.parent) == ["gateway.toml"]
    _, lines = write_rule(link, edit("0", set={"qos": 0}))
    assert lines == []
    assert file.stat().st_ino == after.st_ino


@table(
    "text, change, said",
    [
        (FILE, edit("0", set={"where": "payload.value >"}), "rule[0].where = 'payload.value >'"),
        (FILE, edit("0", set={"wher": "TRUE"}), "unknown key; there are"),
        (FILE, edit("7"), "rule = '7' is not allowed"),
        ("[uplink]\nfoo = 1\n", edit("0"), "uplink.foo = 1 is not allowed"),
        (f'{FILE}\n[[listener]]\nport = 1\npassword_file = "none"\n', edit("1"), "No such file"),
        ("[uplink", edit("0"), "not TOML"),
        (FILE.replace("fleet\n", "fleet\r\n"), edit("1", set={"qos": 0}), BY_HAND),
        ("", edit("0"), "nothing is sent: there is no [uplink]"),
    ],
)
def test_a_file_that_would_not_work_is_not_written(
    tmp_path: Path, text: str, change: RuleChange, said: str
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_bytes(text.encode())
    with pytest.raises((TidegateError, ConfigurationError), match=re.escape(said)):
        write_rule(file, change)
    assert file.read_bytes().decode() == text
    assert names(tmp_path) == ["gateway.toml"]


def test_what_variables_set_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(FILE)
    monkeypatch.setenv("TIDEGATE__UPLINK__RULE__0__WHERE", "payload.value > 1")
    with pytest.raises(TidegateError, match="TIDEGATE__UPLINK__RULE__0__WHERE set the rules"):
        write_rule(file, edit("0", set={"where": "TRUE"}))
    assert file.read_text() == FILE
    monkeypatch.delenv("TIDEGATE__UPLINK__RULE__0__WHERE")
    monkeypatch.setenv("TIDEGATE__UPLINK__WINDOW", "7")
    write_rule(file, edit("0", set={"where": "TRUE"}))


def test_a_file_that_may_not_be_written_or_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    with pytest.raises(ConfigurationError, match="No such file"):
        write_rule(file, edit("0"))
    file.write_text(FILE)
    file.chmod(0o444)
    with pytest.raises(TidegateError, match="may not be written; nothing was changed"):
        write_rule(file, edit("0", set={"qos": 0}))
    assert file.read_text() == FILE


def test_a_file_that_was_changed_meanwhile_stays(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("theirs")
    with pytest.raises(TidegateError, match="changed it meanwhile; nothing was changed"):
        file_edit.replace_file(file, b"ours", b"before")
    assert file.read_text() == "theirs"
    assert names(tmp_path) == ["gateway.toml"]


def test_what_tomlkit_cannot_keep_is_left_to_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tomlkit

    file = tmp_path / "gateway.toml"
    file.write_text(FILE)
    parse = tomlkit.parse
    monkeypatch.setattr(tomlkit, "parse", lambda text: parse(text.replace("few", "many")))
    with pytest.raises(TidegateError, match=re.escape(BY_HAND)):
        write_rule(file, edit("0", set={"qos": 0}))
    assert file.read_text() == FILE


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    write_rule(file, RuleChange(rule="0", set={"where": "payload.value > 30"}))
    wanted = FILE.replace("payload.value > 20", "payload.value > 30")
    assert file.read_bytes() == b"\xef\xbb\xbf" + wanted.encode()
