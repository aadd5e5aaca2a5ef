"""The MemoryCode benchmark with recorded verdicts: what changing instructions end in."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest


def test_recorded_verdicts_bring_every_slot_to_its_end_state(
    repository: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = repository / "tests" / "recorded" / "memorycode.jsonl"
    monkeypatch.setattr(sys, "argv", ["memorycode.py", "--recorded", str(recorded)])
    monkeypatch.setenv("AFTERWORD_BENCH_DATA", str(shared / "data" / "benchmarks"))
    runpy.run_path(str(repository / "benchmarks" / "memorycode.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "| slots | 188 of 188 | 1.000 |" in printed
    assert "| updates | 49 of 49 | 1.000 |" in printed
