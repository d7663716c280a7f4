"""A real Home Assistant core with its MQTT integration; run by its own Python.

Commands are lines of JSON on standard input, each answered by one on standard output: `states`,
`entities`, `devices`, `call` of a service, `log` and `stop`. What the MQTT integration does not
need (its web server, cloud, supervisor and search in the network) is replaced.
"""

import asyncio
import json
import logging
import sys
from typing import Any
from unittest.mock import MagicMock

ABSENT = (
    "aiohasupervisor",
    "aiohttp_asyncmdnsresolver",
    "aiohttp_asyncmdnsresolver.api",
    "hass_nabucasa",
    "hass_nabucasa.remote",
    "homeassistant.components.hassio",
    "homeassistant.helpers.hassio",
    "zeroconf",
    "zeroconf.asyncio",
)
sys.modules.update({name: MagicMock(name=name) for name in ABSENT})

from homeassistant import auth, config_entries, core, loader  # noqa: E402 - after what is absent
from homeassistant.helpers import (  # noqa: E402
    area_registry,
    category_registry,
    device_registry,
    entity,
    entity_registry,
    floor_registry,
    frame,
    issue_registry,
    label_registry,
    restore_state,
    template,
    translation,
)

REGISTRIES = (
    area_registry,
    category_registry,
    device_registry,
    entity_registry,
    floor_registry,
    issue_registry,
    label_registry,
    restore_state,
)

JUDGES = ("homeassistant.components", "homeassistant.helpers.entity")
"""Whose warnings are about what they were given."""


class Log(logging.Handler):
    """Warnings and errors about what was discovered."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(JUDGES):
            self.lines.append(f"{record.name}: {record.getMessage()}")


async def start(folder: str, port: int) -> Any:
    """Return a running core that is connected to the broker on this port."""
    hass = core.HomeAssistant(folder)
    hass.config.skip_pip = True
    await hass.config.async_set_time_zone("UTC")
    hass.config_entries = config_entries.ConfigEntries(hass, {})
    loader.async_setup(hass)
    entity.async_setup(hass)
    frame.async_setup(hass)
    for registry in REGISTRIES:
        await registry.async_load(hass)
    template.async_setup(hass)
    translation.async_setup(hass)
    hass.auth = await auth.auth_manager_from_config(hass, [], [])
    hass.config.components |= {"http", "file_upload"}
    hass.http = MagicMock()
    await hass.config_entries.async_initialize()
    entry = next(iter(hass.config_entries.async_entries("mqtt")), None)
    if entry is None:
        entry = config_entries.ConfigEntry(
            data={"broker": "127.0.0.1", "port": port},
            options={},
            domain="mqtt",
            title="mqtt",
            version=1,
            minor_version=2,
            source="user",
            unique_id=None,
            discovery_keys={},
            subentries_data=(),
        )
        await hass.config_entries.async_add(entry)
    else:
        await hass.config_entries.async_setup(entry.entry_id)
    hass.set_state(core.CoreState.running)
    hass.bus.async_fire("homeassistant_started")
    return hass


async def answer(hass: Any, log: Log, command: dict[str, Any]) -> object:
    """Return the answer to a command."""
    match command["do"]:
        case "states":
            return {
                each.entity_id: {"state": each.state, **each.attributes}
                for each in hass.states.async_all()
            }
        case "entities":
            found = entity_registry.async_get(hass).entities.values()
            return {each.entity_id: each.unique_id for each in found}
        case "devices":
            return [each.name for each in device_registry.async_get(hass).devices.values()]
        case "call":
            await hass.services.async_call(
                command["domain"], command["service"], command["data"], blocking=True
            )
            return True
        case "log":
            return log.lines
        case _:
            raise ValueError(command)


async def main(folder: str, port: int) -> None:
    log = Log()
    logging.getLogger().addHandler(log)
    hass = await start(folder, port)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        if command["do"] == "stop":
            break
        print(json.dumps(await answer(hass, log, command), default=str), flush=True)
    await hass.async_stop(force=True)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
