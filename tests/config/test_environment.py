from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigurationError
from gateway.config.load import load, read, with_environment
from tests.support.table import table

LISTENERS = {"listener": [{"port": 1}, {"port": 2}]}


@table(
    ("document", "name", "text", "result"),
    [
        ({}, "GATEWAY__ID", "barn", {"gateway": {"id": "barn"}}),
        ({"gateway": {"id": "a"}}, "GATEWAY__ID", "b", {"gateway": {"id": "b"}}),
        ({}, "METRICS__PORT", "9000", {"metrics": {"port": 9000}}),
        ({}, "METRICS__ALLOW_ANONYMOUS", "true", {"metrics": {"allow_anonymous": True}}),
        ({}, "METRICS__HOSTS", '["a", "b"]', {"metrics": {"hosts": ["a", "b"]}}),
        ({}, "A__B", '"1"', {"a": {"b": "1"}}),
        ({}, "A__B", "1\nc = 2", {"a": {"b": "1\nc = 2"}}),
        ({}, "A__B", "mqtt://fleet:1883", {"a": {"b": "mqtt://fleet:1883"}}),
        ({}, "LISTENER__0__PORT", "7", {"listener": [{"port": 7}]}),
        (LISTENERS, "LISTENER__1__PORT", "7", {"listener": [{"port": 1}, {"port": 7}]}),
        (LISTENERS, "LISTENER__2__PORT", "7", {"listener": [*LISTENERS["listener"], {"port": 7}]}),
        ({"uplink": [{"url": "a"}]}, "UPLINK__URL", "b", {"uplink": [{"url": "b"}]}),
        ({"uplink": {"url": "a"}}, "UPLINK__URL", "b", {"uplink": {"url": "b"}}),
    ],
)
def test_a_variable_is_a_key(
    document: dict[str, Any], name: str, text: str, result: dict[str, Any]
) -> None:
    before = repr(document)
    assert with_environment(document, {f"TIDEGATE__{name}": text, "PATH": "/bin"}) == result
    assert repr(document) == before


@pytest.mark.parametrize(
    "name", ["", "GATEWAY__", "GATEWAY__ID__MORE", "LISTENER__5__PORT", "LISTENER__PORT", "0"]
)
def test_a_name_that_leads_nowhere(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"TIDEGATE__{name}"):
        with_environment({"gateway": {"id": "a"}, **LISTENERS}, {f"TIDEGATE__{name}": "1"})


def test_a_configuration_is_read_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[gateway]\nid = "barn"\n')
    monkeypatch.setenv("TIDEGATE__GATEWAY__ID", "mill")
    monkeypatch.setenv("TIDEGATE__LISTENER__0__PORT", "1999")
    configuration = load(file)
    assert (configuration.gateway_id, configuration.listeners[0].port) == ("mill", 1999)
    monkeypatch.setenv("TIDEGATE__GATWAY__ID", "mill")
    with pytest.raises(ConfigurationError, match="gatway"):
        load(file)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("BROKER__P2PX", "broker.p2px"),
        ("LISTENER__PORT", "listener[0].port"),
        ("LISTENER__0__PORT", "listener[0].port"),
    ],
)
def test_a_mistake_of_a_variable_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[gateway]\nid = "barn"\n[[listener]]\nport = 1884\n[broker]\nqos = 1\n')
    monkeypatch.setenv(f"TIDEGATE__{name}", "no")
    _, mistakes = read(file)
    assert {(each.file, each.key) for each in mistakes} == {
        (str(file), "broker.qos"),
        (f"TIDEGATE__{name}", key),
    }
    assert all(str(each).startswith(f"{each.file}: {each.key} = ") for each in mistakes)
