"""docs/testing.md: every block is a test file that passes, and everything that is offered is named."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from afterword.extractors import testing

PAGE = Path(__file__).parent.parent.parent / "docs" / "testing.md"
BLOCKS = re.findall(r"^## (.+?)$(?:(?!^## ).)*?```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("title", "block"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_every_block_is_a_test_that_passes(title: str, block: str, tmp_path: Path) -> None:
    (tmp_path / "test_block.py").write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_block.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.read_text("utf-8").count("```python") == 4


def test_every_double_and_every_fault_is_named() -> None:
    page = PAGE.read_text("utf-8")
    for name in (
        "OracleExtractor",
        "ScriptedEndpoint",
        "Reply",
        "facts_reply",
        "replayed",
        "request_key",
        "schema_echoed",
    ):
        assert hasattr(testing, name)
        assert name in page
    for field in fields(testing.Reply):
        assert f"{field.name}=" in page, field.name
