"""The README and the pages: their links and their examples."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from commands import Commands
from pages import all_pages, broken_links

LONGEST_README = 200


def test_the_readme_is_short(repository: Path) -> None:
    assert len((repository / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def test_the_readme_example_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(example.splitlines()) <= 30
    subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    run = Commands(tmp_path, monkeypatch, capsys)
    run("run")
    facts = json.loads(run("facts", "--user", "mira", "--json"))
    assert {"Bergen"} <= {fact["value"] for fact in facts}


def test_the_readme_shows_the_block_of_the_demo(repository: Path, afterword: Commands) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(<afterword:memory.*?)```", readme, re.DOTALL)
    assert block in afterword("demo")


def test_every_link_leads_to_a_file_and_a_heading(repository: Path) -> None:
    assert broken_links(all_pages(repository)) == []


def test_no_code_in_a_table_holds_a_bar(repository: Path) -> None:
    """The builders of the site and GitHub show an escaped bar in different ways."""
    for page in all_pages(repository):
        for line in page.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"`[^`]*\\\|[^`]*`", line), f"{page.name}: {line[:80]}"


@pytest.mark.parametrize(
    ("heading", "benchmark"),
    [
        ("How fast it recalls", "recall_peers"),
        ("What a live agent pays", "live_agent"),
        ("What storing costs", "throughput"),
    ],
)
def test_the_comparison_shows_figures_of_the_benchmarks(repository: Path, heading: str, benchmark: str) -> None:
    page = (repository / "docs" / "comparison.md").read_text(encoding="utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    measured = (repository / "benchmarks" / f"{benchmark}.md").read_text(encoding="utf-8")
    figures = set(re.findall(r"(?<![\d.,])\d+\.\d+(?![\d.])", section))
    assert len(figures) >= 4
    assert [figure for figure in figures if figure not in measured] == []


def test_the_matrix_shows_both_ends_of_what_the_project_allows(repository: Path) -> None:
    page = (repository / "benchmarks" / "version_matrix.md").read_text(encoding="utf-8")
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\|.*", page, re.M)]
    table = [dict(zip(header, row, strict=True)) for row in rows]
    assert all(re.match(r"\d+ passed in|the lowest version is the highest", row["tests"]) for row in table)
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = {text.rpartition(" ")[2] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)}
    ends = {(row["Python"], row["at the lowest version"]) for row in table if row["part"] == "agents"}
    assert {(python, end) for python in pythons for end in ("all", "-")} <= ends
    extras = project["optional-dependencies"]["agent-framework"]
    declared = "\n".join([*project["dependencies"], *extras])
    lowest = dict(re.findall(r"^([\w-]+)(?:\[\w+\])?>=([\d.]+)", declared, re.M))
    for column, name in {"autogen": "autogen-agentchat", "agent-framework": "agent-framework-core"}.items():
        lowest[column] = lowest[name]
    for row in table:
        if row["part"] == "agents" and row["Python"] == min(pythons) and row["at the lowest version"] not in ("-", ""):
            chosen = header[3:9] if row["at the lowest version"] == "all" else [row["at the lowest version"]]
            for name in chosen:
                assert row[name].startswith(lowest[name]), f"{name}: make matrix was not run since its range changed"
