"""The wheel: complete, with the metadata of the project, and enough by itself in an empty environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Collection
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


EXTRAS = "agent-framework,langgraph,server,workers"
"""What some modules import, and take their types from. No module imports what `local` brings when it is loaded."""

NEEDS_EXTRAS = (
    "afterword.agents.agent_framework",
    "afterword.langgraph",
    "afterword.pipeline.background.workers",
    "afterword.server",
)

IMPORT_ALL = """
import importlib, pkgutil
import afterword

print(afterword.__file__, *[getattr(afterword, name) for name in afterword.__all__])
for module in pkgutil.walk_packages(afterword.__path__, "afterword.", onerror=lambda name: None):
    # These two are run, by Python and by Alembic.
    if module.name in {"afterword.__main__", "afterword.store.migrations.env"}:
        continue
    try:
        importlib.import_module(module.name)
        print("imported", module.name)
    except ModuleNotFoundError as error:
        print("missing", module.name, error)
"""


class Installed:
    """A virtual environment in which nothing but the wheel was installed, and an empty folder to work in."""

    def __init__(self, folder: Path, wheel: Path, repository: Path) -> None:
        self.folder, self.bin, self._wheel = folder / "work", folder / "environment/bin", wheel
        self.folder.mkdir()
        # The versions of the development environment, so that a new release elsewhere cannot change the outcome.
        pinned = (repository / "constraints.txt").read_text(encoding="utf-8").splitlines()
        self._pins = folder / "pins.txt"
        versions = "\n".join(line.rstrip(" \\") for line in pinned if "--hash" not in line)
        self._pins.write_text(versions, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "venv", self.bin.parent], check=True, timeout=120)
        self.install("")

    def install(self, extras: str) -> None:
        wheel = f"{self._wheel}{extras}"
        self.run("python", "-m", "pip", "install", "--quiet", "--no-compile", "--constraint", str(self._pins), wheel)

    def run(
        self, program: str, *arguments: str, program_folder: Path | None = None, expected_codes: Collection[int] = (0,)
    ) -> str:
        """Return what a program of this environment prints, run as if the checkout did not exist."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AFTERWORD_", "PYTHON"))}
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        command = [str((program_folder or self.bin) / program), *arguments]
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env={**own, "PATH": path},
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert ended.returncode in expected_codes, (
            f"{program} ended with {ended.returncode}: {ended.stdout}{ended.stderr}"
        )
        return ended.stdout


@pytest.fixture(scope="module")
def installed(repository: Path, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel_of(built), repository)


@pytest.mark.installs
def test_it_works_where_nothing_else_is_installed(repository: Path, installed: Installed) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert installed.run("afterword", "--version").strip() == f"afterword {project['version']}"
    assert "<afterword:memory" in installed.run("afterword", "demo")
    first, *modules = installed.run("python", "-c", IMPORT_ALL).splitlines()
    assert first.startswith(str(installed.bin.parent))
    assert sum(line.startswith("imported ") for line in modules) > 250
    missing = [line.split(" ", 2)[1:] for line in modules if line.startswith("missing ")]
    assert [(module, error) for module, error in missing if not module.startswith(NEEDS_EXTRAS)] == []


@pytest.mark.installs
def test_with_its_extras_every_module_can_be_imported(installed: Installed) -> None:
    installed.install(f"[{EXTRAS}]")
    modules = installed.run("python", "-c", IMPORT_ALL).splitlines()
    assert len(modules) > 300
    assert [line for line in modules if line.startswith("missing ")] == []


@pytest.mark.installs
def test_the_types_of_everything_that_can_be_imported_are_known(installed: Installed) -> None:
    installed.install(f"[{EXTRAS}]")
    checker = Path(sys.executable).parent
    arguments = "--verifytypes", "afterword", "--ignoreexternal", "--outputjson"
    # The exit code 1 means that a type is unknown. The report names the symbols.
    output = installed.run("basedpyright", *arguments, program_folder=checker, expected_codes=(0, 1))
    report = json.loads(output)["typeCompleteness"]
    unknown = {symbol["name"] for symbol in report["symbols"] if symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"]}
    assert report["pyTypedPath"].startswith(str(installed.bin.parent))
    assert len(report["symbols"]) > 1000
    assert unknown == set()
    assert report["completenessScore"] == 1
