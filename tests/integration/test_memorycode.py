"""The MemoryCode benchmark with recorded verdicts: what changing instructions end in."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path


async def test_recorded_verdicts_bring_every_slot_to_its_end_state(repository: Path, shared: Path) -> None:
    recorded = repository / "tests" / "recorded" / "memorycode.jsonl"
    command = [sys.executable, str(repository / "benchmarks" / "memorycode.py"), "--recorded", str(recorded)]
    environment = {**os.environ, "AFTERWORD_BENCH_DATA": str(shared / "data" / "benchmarks")}
    told = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=True, timeout=200, env=environment
    )
    assert "| slots | 188 of 188 | 1.000 |" in told.stdout
    assert "| updates | 49 of 49 | 1.000 |" in told.stdout
