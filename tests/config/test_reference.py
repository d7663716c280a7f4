"""What is made of the declarations is what they say now, and says it of every key."""

import json
import tomllib
from pathlib import Path

from jsonschema import Draft7Validator  # type: ignore[import-untyped]  # ships no types

from gateway.config.configuration import Configuration
from gateway.config.json_schema import json_schema, schema_text
from gateway.config.load import read_document
from gateway.config.reference import with_reference
from gateway.settings.declaration import Key, keys_of
from tests.config.test_load import EVERYTHING

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/use/configuration.md"
SCHEMA = ROOT / "examples" / "gateway.schema.json"
AGAIN = "run `make reference`"


def declared(settings: type = Configuration, place: str = "") -> dict[str, Key]:
    found = {}
    for key in keys_of(settings):
        if key.table is None:
            found[place + key.name] = key
        else:
            found |= declared(key.table, f"{place}{key.name}.")
    return found


def test_the_page_is_what_the_declarations_say() -> None:
    text = PAGE.read_text("utf-8")
    assert with_reference(text) == text, AGAIN


def test_the_schema_is_what_the_declarations_say() -> None:
    assert SCHEMA.read_text("utf-8") == schema_text(), AGAIN
    Draft7Validator.check_schema(json_schema())


def test_every_key_says_what_it_means_and_what_is_allowed() -> None:
    keys = declared()
    assert len(keys) > 100
    silent = {name for name, key in keys.items() if not key.meaning or not key.check.allowed}
    assert not silent
    assert not {name for name, key in keys.items() if not key.check.schema}


def test_every_default_can_be_written_into_a_file() -> None:
    wrong = {}
    for name, key in declared().items():
        if key.default in (None, ()) or key.needed:
            continue
        value = tomllib.loads(f"value = {key.check.spell(key.default)}")["value"]
        errors = list(Draft7Validator(dict(key.check.schema)).iter_errors(value))
        try:
            same = key.check(value) == key.default
        except ValueError as error:
            wrong[name] = str(error)
        else:
            if not same or errors:
                wrong[name] = value
    assert not wrong


def test_the_schema_takes_what_the_reader_takes() -> None:
    validator = Draft7Validator(json_schema())
    document = tomllib.loads(EVERYTHING)
    assert not read_document("a file", document)[1]
    assert not list(validator.iter_errors(document))


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    validator = Draft7Validator(json_schema())
    taken = [
        text
        for text in (
            "x = 1",
            "[listener]\nport = 1",
            "[[listener]]\nport = 0",
            "[[listener]]\nmode = '8'",
            "[broker]\nsys_interval = '1'",
            "[broker]\nqueue_when_full = 'drop'",
            "[history]\nkeep = '1h30m'",
            "[outbox]\nmaximum_bytes = '1 GB'",
            "[uplink]\nbudget = '20MB'",
            "[uplink]\nurl = 'http://fleet'",
            "[[uplink.rule]]\nwhere = 'a'",
            "[storage]\ndurability = 'batch(0)'",
            "gateway.id = '-a'",
        )
        if not read_document("a file", tomllib.loads(text))[1]
        or not list(validator.iter_errors(json.loads(json.dumps(tomllib.loads(text)))))
    ]
    assert not taken
