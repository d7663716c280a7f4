"""Writes a gateway's configuration from the options of the Home Assistant add-on.

    python options_to_toml.py /data/options.json /data

Secrets become files of their own, which only their owner can read.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PORT = 1884
"""Mosquitto's add-on has 1883."""


def text(value: str) -> str:
    """Return a text of TOML; JSON's escapes are among its own."""
    return json.dumps(value, ensure_ascii=True)


def lines(options: dict[str, Any], folder: Path) -> Iterator[str]:
    """Yield the configuration."""
    yield f"[gateway]\nid = {text(options['gateway_id'])}"
    yield '[metrics]\nhost = "0.0.0.0"\nallow_anonymous = true'
    yield f'[[listener]]\nhost = "0.0.0.0"\nport = {PORT}'
    if options.get("users"):
        yield f"password_file = {text(str(folder / 'users'))}"
    else:
        yield "allow_anonymous = true"
    for port in options.get("serial_ports", []):
        yield f"[[serial]]\nport = {text(port)}"
    if options.get("fleet_url"):
        yield f"[uplink]\nurl = {text(options['fleet_url'])}"
        if options.get("fleet_username"):
            yield f"username = {text(options['fleet_username'])}"
        if options.get("fleet_password"):
            yield f"password_file = {text(str(folder / 'fleet-password'))}"
        for topic in options.get("topics", []):
            yield f"[[uplink.rule]]\ntopic = {text(topic)}"
    yield from options.get("extra", [])


def write(file: Path, content: str) -> None:
    """Write a file that only its owner can read."""
    descriptor = os.open(file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as output:
        output.write(content)


def main(file: Path, folder: Path) -> None:
    """Write the configuration and the files that it names."""
    options = json.loads(file.read_text())
    write(folder / "fleet-password", options.get("fleet_password", ""))
    write(folder / "gateway.toml", "\n".join(lines(options, folder)) + "\n")
    write(folder / "users", "")
    for user in options.get("users") or []:
        command = ["tidegate", "user", "add", user["name"], "--file", str(folder / "users")]
        subprocess.run(command, input=user["password"] + "\n", text=True, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
