"""The wheel: complete, with the metadata of the project."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from afterword.normal_form import composed


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist: those of `make dist`, or newly built ones."""
    if "AFTERWORD_TEST_DIST" in os.environ:
        return Path(os.environ["AFTERWORD_TEST_DIST"]).resolve()
    return build(repository, tmp_path_factory.mktemp("dist"))


def build(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    return folder


def wheel_of(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        assert opened.testzip() is None
        return set(opened.namelist())


def test_the_wheel_holds_every_file_of_the_package(repository: Path, built: Path) -> None:
    source = repository / "src"
    files = {
        composed(str(path.relative_to(source)))
        for path in (source / "afterword").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = names_in(wheel_of(built))
    assert {"afterword/py.typed", "afterword/client/synchronous/wrappers.pyi"} <= files
    assert any(name.startswith("afterword/extractors/model/prompts/") for name in files)
    assert files == {name for name in names if ".dist-info/" not in name}


def test_its_metadata_is_that_of_the_project(repository: Path, built: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel = wheel_of(built)
    with zipfile.ZipFile(wheel) as opened:
        (path,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(opened.read(path).decode())
        commands = opened.read(path.replace("METADATA", "entry_points.txt")).decode()
    assert (metadata["Name"], metadata["Version"]) == ("afterword", project["version"])
    assert metadata["Requires-Python"] == project["requires-python"]
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert len([name for name in metadata.get_all("Requires-Dist", []) if "extra ==" not in name]) == len(
        project["dependencies"]
    )
    assert metadata.get_payload() == (repository / "README.md").read_text(encoding="utf-8")
    assert "afterword = afterword.cli:main" in commands
    assert f"## {project['version']}" in (repository / "CHANGELOG.md").read_text(encoding="utf-8")
