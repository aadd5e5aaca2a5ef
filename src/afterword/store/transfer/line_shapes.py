"""The lines of an export by kind: what each must hold, and its parts as the database takes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from sqlmodel import SQLModel

from afterword.errors import FileInvalid
from afterword.facts.findings import FindingPolicy
from afterword.facts.local_time import read_zone
from afterword.facts.scopes import Scope
from afterword.store.findings.finding_table import FindingRow
from afterword.store.forgetting.tombstone_rows import parse_tombstone, parse_tombstone_key
from afterword.store.json_lines import Line, LineShape, parse_columns, parse_shape
from afterword.store.ledger import RunStatus
from afterword.store.rows import check_state, unpack_transcript
from afterword.store.scope_rows import Policy
from afterword.store.sessions import Progress
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    RunRow,
    SessionRow,
    StateRow,
    TurnRow,
    VerdictRow,
    WindowRow,
)

_VALUE: Any = Field(strict=False)
"""A field that holds the value of a member of an enumeration."""


class _ScopeShape(LineShape):
    scope: str
    policy: Policy = _VALUE
    zone: str | None = None
    findings: dict[str, Any] | None = None
    other_people: bool | None = None


class _SessionShape(LineShape):
    progress: Progress = _VALUE
    turns: list[dict[str, Any]]
    state: dict[str, Any] | None = None


class _AssertionShape(LineShape):
    evidence: list[dict[str, Any]]


class _WindowShape(LineShape):
    assertions: list[str]
    rejections: list[dict[str, Any]]
    findings: list[dict[str, Any]] = Field(default_factory=list)


class _RunShape(LineShape):
    id: int
    status: RunStatus = _VALUE
    session_id: str | None = None
    windows: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    verdicts: list[str]


_TABLES: dict[str, type[SQLModel]] = {
    "session": SessionRow,
    "assertion": AssertionRow,
    "window": WindowRow,
    "verdict": VerdictRow,
    "run": RunRow,
}
_SHAPES: dict[str, type[LineShape]] = {
    "scope": _ScopeShape,
    "session": _SessionShape,
    "assertion": _AssertionShape,
    "window": _WindowShape,
    "run": _RunShape,
}
_PARTS: dict[str, type[SQLModel]] = {
    "turns": TurnRow,
    "evidence": EvidenceRow,
    "rejections": RejectionRow,
    "findings": FindingRow,
}


def parse_line(line: Line) -> Line:
    """Return a line with its parts parsed, and the columns of its row as "columns".

    Raises `FileInvalid` and `ScopeInvalid`.
    """
    kind = line["row"]
    if kind == "key":
        parse_tombstone_key(line)
    elif kind == "tombstone":
        parse_tombstone(line)
    parsed = dict(line)
    if kind in _SHAPES:
        parsed |= dict(parse_shape(_SHAPES[kind], line, kind))
    if kind in _TABLES:
        parsed["columns"] = parse_columns(_TABLES[kind], line)
    for name, table in _PARTS.items():
        if isinstance(parsed.get(name), list) and kind in _SHAPES:
            parsed[name] = [parse_columns(table, part) for part in parsed[name]]
    _check_parts(kind, parsed)
    return parsed


def _check_zone(name: str | None) -> None:
    try:
        read_zone(name or "UTC")
    except ValueError as error:
        raise FileInvalid(f"scope.zone: {error}") from None


def _check_parts(kind: str, parsed: Line) -> None:
    """Check what a line of this kind holds beside columns; the saved state of a session is parsed."""
    if kind == "scope":
        Scope.parse(parsed["scope"])
        _check_zone(parsed["zone"])
        if parsed["findings"] is not None:
            _check_finding_policy(parsed["findings"])
    if kind == "session" and parsed["state"] is not None:
        parsed["state"] = parse_columns(StateRow, parsed["state"])
        check_state(parsed["state"]["content"])
    if kind == "run" and parsed["columns"]["transcript"] is not None:
        unpack_transcript(parsed["columns"]["transcript"])


def _check_finding_policy(stored: Line) -> None:
    try:
        FindingPolicy.from_json(stored)
    except (KeyError, TypeError, ValueError):
        raise FileInvalid("the settings for findings of agents cannot be read") from None
