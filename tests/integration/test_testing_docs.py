"""docs/testing.md: every block is a test file that passes, and everything that is offered is named."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from afterword.extractors import testing
from page_blocks import Block, read_blocks

PAGE = Path(__file__).parent.parent.parent / "docs" / "testing.md"
BLOCKS = [block for block in read_blocks(PAGE) if block.language == "python"]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line {block.line}")
def test_every_block_is_a_test_that_passes(block: Block, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_block.py").write_text(block.text, encoding="utf-8")
    # As in a folder of its own, without this project's configuration.
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", f"--rootdir={tmp_path}", "-c", os.devnull]
    options += ["-o", "asyncio_default_fixture_loop_scope=function"]
    # Loading other plugins and a search for garbage take longer than the tests, which use neither.
    options += ["--disable-plugin-autoload", "-p", "asyncio", "-p", "no:unraisableexception"]
    code = pytest.main([*options, str(tmp_path / "test_block.py")])
    printed = capsys.readouterr().out
    assert code == pytest.ExitCode.OK, printed
    assert "passed" in printed


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
