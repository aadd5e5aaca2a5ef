"""The modes: ways to ask a model for an answer that fits a schema. The mode that an endpoint supports is saved."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Literal, get_args
from uuid import uuid4

from pydantic import BaseModel

from afterword import telemetry

Mode = Literal["json_schema", "tools", "json"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""The modes in the order in which they are tried: the strictest first."""

PROBE = (
    {"role": "system", "content": "Answer with JSON that fits the given schema."},
    {"role": "user", "content": "Note down one thing: on 3 May 2024 Ana planted an apple tree."},
)
PROBE_ANSWER = '{"noted": [{"sort": "plant", "name": "apple tree", "day": "2024-05-03"}]}'

_log = telemetry.logs(__name__)


# Names and docstrings of the next three classes are sent to the model.
class _Sort(StrEnum):
    PLANT = "plant"
    ANIMAL = "animal"


class _Noted(BaseModel):
    sort: _Sort
    name: str
    day: date | None = None


class Probe(BaseModel):
    """A tiny answer whose schema has what the real ones have: a list, a choice, a date, what may be left out."""

    noted: list[_Noted]


def saved_mode(path: Path, place: str) -> Mode | None:
    """Return the mode that is saved for a model at an address, or None if the file has none or cannot be read."""
    saved = _saved_modes(path).get(place)
    return next((mode for mode in MODES if mode == saved), None)


def save_mode(path: Path, place: str, mode: Mode) -> bool:
    """Save the mode for a model at an address. Return whether the file could be written."""
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps({**_saved_modes(path), place: mode}, indent=1, sort_keys=True), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        # If the folder is read-only, each process has to try the modes again.
        _log.info("the mode that was found is not kept (%s)", type(error).__name__)
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        return False
    return True


def _saved_modes(path: Path) -> dict[str, object]:
    try:
        modes = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return modes if isinstance(modes, dict) else {}
