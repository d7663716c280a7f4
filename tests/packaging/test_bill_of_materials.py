"""The list of what is inside a release file."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "packaging/bill_of_materials.py"

METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
{more}
"""
NEEDS = """\
License-Expression: Apache-2.0
Requires-Dist: paho-mqtt<3,>=2.1
Requires-Dist: pyserial<4,>=3.5; extra == "serial"
Requires-Dist: bleak<4,>=3; extra == "ble"\
"""


def listed(*arguments: str, epoch: str = "1795878520") -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), *arguments]
    environment = {"SOURCE_DATE_EPOCH": epoch}
    output = [subprocess.check_output(command, env=environment, text=True) for _ in range(2)]
    assert output[0] == output[1]
    found: dict[str, Any] = json.loads(output[0])
    assert found["bomFormat"] == "CycloneDX"
    return found


def test_a_wheel_has_itself_and_what_it_needs(tmp_path: Path) -> None:
    wheel = tmp_path / "tidegate-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        text = METADATA.format(name="tidegate", version="0.1.0", more=NEEDS)
        archive.writestr("tidegate-0.1.0.dist-info/METADATA", text)
    found = listed("wheel", str(wheel), "serial,tui")
    main = found["metadata"]["component"]
    assert (main["name"], main["version"]) == ("tidegate", "0.1.0")
    assert main["licenses"] == [{"expression": "Apache-2.0"}]
    assert found["metadata"]["timestamp"] == "2026-11-28T15:08:40Z"
    needed = {each["name"]: each["description"] for each in found["components"]}
    assert needed == {
        "paho-mqtt": "needed as paho-mqtt<3,>=2.1; not inside",
        "pyserial": "needed as pyserial<4,>=3.5; not inside",
    }


def test_an_environment_has_every_package(tmp_path: Path) -> None:
    for name, version, more in (
        ("tidegate", "0.1.0+g12", ""),
        ("Pygments", "2.21.0", "License: BSD-2-Clause"),
        ("msgspec", "0.22.0", "License-Expression: BSD-3-Clause"),
    ):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(METADATA.format(name=name, version=version, more=more))
    found = listed("environment", str(tmp_path))
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/tidegate@0.1.0%2Bg12"
    assert [each["purl"] for each in found["components"]] == [
        "pkg:pypi/pygments@2.21.0",
        "pkg:pypi/msgspec@0.22.0",
    ]
    assert [each["licenses"] for each in found["components"]] == [
        [{"license": {"name": "BSD-2-Clause"}}],
        [{"expression": "BSD-3-Clause"}],
    ]
    (dependencies,) = found["dependencies"]
    assert dependencies["dependsOn"] == [each["bom-ref"] for each in found["components"]]


@pytest.mark.parametrize("field", ["SOURCE_DATE_EPOCH", "content"])
def test_its_number_is_that_of_its_content(tmp_path: Path, field: str) -> None:
    folder = tmp_path / "tidegate-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA.format(name="tidegate", version="1", more=""))
    first = listed("environment", str(tmp_path))
    if field == "content":
        (folder / "METADATA").write_text(METADATA.format(name="tidegate", version="2", more=""))
        second = listed("environment", str(tmp_path))
    else:
        second = listed("environment", str(tmp_path), epoch="1795878521")
    assert first["serialNumber"] != second["serialNumber"]
