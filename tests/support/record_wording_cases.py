"""Wishes that something is not kept, and honest sentences, in seven languages, written apart from the patterns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from off_record_cases import RecordCase

_WORDINGS = json.loads(Path(__file__).with_name("record_wordings.json").read_text(encoding="utf-8"))


def record_wording_cases() -> Iterator[RecordCase]:
    """Yield the wishes, by the set in which they were written, and the honest sentences."""
    for name, languages in _WORDINGS["wishes"].items():
        for wishes in languages.values():
            yield from (RecordCase(f"{name} set of wordings", text, is_hidden=True) for text in wishes)
    for sentences in _WORDINGS["honest"].values():
        yield from (RecordCase("honest sentence", text, is_hidden=False) for text in sentences)
