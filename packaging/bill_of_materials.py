"""Prints what a release file has inside as a CycloneDX document, the same for the same content.

    python packaging/bill_of_materials.py wheel tidegate-0.1.0-py3-none-any.whl serial,tui
    python packaging/bill_of_materials.py environment FOLDER

A wheel has only itself inside and says what it needs; of an environment every package is listed.
"""

import hashlib
import json
import os
import sys
import uuid
import zipfile
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

NAME = "tidegate"


def component(metadata: Message, kind: str = "library") -> dict[str, Any]:
    """Return a package as a component, by the METADATA of its distribution."""
    name, version = metadata["Name"], metadata["Version"]
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version.replace('+', '%2B')}"
    found: dict[str, Any] = {"type": kind, "bom-ref": purl, "name": name, "version": version}
    expression = metadata["License-Expression"]
    text = (metadata["License"] or "").strip().partition("\n")[0]
    if expression:
        found["licenses"] = [{"expression": expression}]
    elif text:
        found["licenses"] = [{"license": {"name": text}}]
    return {**found, "purl": purl}


def needed(metadata: Message, extras: list[str]) -> list[dict[str, Any]]:
    """Return the packages that a wheel needs with these extras: a name, and which versions."""
    found = {}
    for requirement in metadata.get_all("Requires-Dist") or []:
        what, _, marker = requirement.partition(";")
        extra = marker.partition("extra ==")[2].strip().strip("\"'")
        if not extra or extra in extras:
            name = what.strip().split("<")[0].split(">")[0].split("=")[0].split("[")[0].strip()
            description = f"needed as {what.strip()}; not inside"
            found[name] = {
                "type": "library",
                "bom-ref": f"pkg:pypi/{name}",
                "name": name,
                "description": description,
                "scope": "excluded",
                "purl": f"pkg:pypi/{name}",
            }
    return [found[name] for name in sorted(found)]


def document(main: dict[str, Any], parts: list[dict[str, Any]]) -> str:
    """Return the document; its time is SOURCE_DATE_EPOCH and its number a hash of its content."""
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    content: dict[str, Any] = {
        "metadata": {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": main},
        "components": parts,
        "dependencies": [
            {"ref": main["bom-ref"], "dependsOn": [each["bom-ref"] for each in parts]}
        ],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
    number = uuid.UUID(bytes=digest[:16], version=4)
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{number}"}
    return json.dumps({**head, "version": 1, **content}, indent=1) + "\n"


def of_wheel(file: Path, extras: list[str]) -> str:
    """Return the document of a wheel."""
    with zipfile.ZipFile(file) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    main = component(metadata, "application")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    main["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return document(main, needed(metadata, extras))


def of_environment(folder: Path) -> str:
    """Return the document of a folder into which packages were installed."""
    files = sorted(folder.glob("*.dist-info/METADATA"))
    found = [Parser().parsestr(file.read_text(encoding="utf-8")) for file in files]
    (main,) = (each for each in found if each["Name"] == NAME)
    return document(component(main, "application"), [component(e) for e in found if e is not main])


if __name__ == "__main__":
    kind, path, *rest = sys.argv[1:]
    if kind == "wheel":
        print(of_wheel(Path(path), "".join(rest).split(",")), end="")
    else:
        print(of_environment(Path(path)), end="")
