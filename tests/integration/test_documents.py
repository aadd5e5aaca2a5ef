"""The README and the pages: their links and their examples."""

from __future__ import annotations

import json
import re
import subprocess
import sys
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
