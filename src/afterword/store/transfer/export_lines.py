"""Reads the lines of an export file in groups, checks their fields, and masks secrets in them.

The last line tells whether the file is complete. Secrets are masked again, since the store that wrote the file may have
masked fewer, or somebody may have edited the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, Field
from sqlmodel import SQLModel

from afterword.errors import FileInvalid
from afterword.facts.findings import FindingPolicy
from afterword.facts.local_time import read_zone
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.privacy.policy import Privacy
from afterword.store.findings.finding_rows import FindingRow
from afterword.store.forgetting.tombstone_replay import EXPORT, parse_forgotten_content_line
from afterword.store.json_lines import Line, LineShape, parse_columns, parse_shape, read_lines
from afterword.store.ledger import RunStatus
from afterword.store.rows import (
    check_packed_state,
    pack_state,
    pack_transcript,
    turn_of,
    unpack_state,
    unpack_transcript,
)
from afterword.store.scope_rows import ApprovalPolicy
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

FORMAT, VERSION = EXPORT
LINES_AT_ONCE = 1_000
BYTES_AT_ONCE = 2_000_000
"""After this many bytes a group of lines ends. The line of a session is long, with all turns and the saved state."""


_VALUE: Any = Field(strict=False)
"""A field that accepts the value of an enumeration's member, as JSON holds it."""
_LIST: Any = Field(strict=False)
"""A tuple that JSON holds as a list."""
_TABLES: dict[str, type[SQLModel]] = {
    "session": SessionRow,
    "assertion": AssertionRow,
    "window": WindowRow,
    "verdict": VerdictRow,
    "run": RunRow,
}
_ASSERTION_TEXTS = ("value", "statement", "subject", "attribute", "limited_to", "outcome", "former_name", "tags")


def read_head(path: Path) -> Line:
    """Return the first line of a file. Raises `FileInvalid` if the file is no export, or is of another version."""
    try:
        head: Line = next(read_lines(path, dict), (1, 0, {}))[2]
    except FileInvalid as error:
        raise FileInvalid(f"{error}; `afterword import --from KIND` reads the files of other libraries") from None
    if head.get("format") != FORMAT:
        raise FileInvalid("this is no export of afterword; `afterword import --from KIND` reads the files of others")
    if head.get("version") != VERSION:
        raise FileInvalid(f"the export is of version {head.get('version')}, this program reads {VERSION}; upgrade it")
    return head


def read_groups(path: Path) -> Iterator[tuple[str, list[Line]]]:
    """Yield the lines between the first and the last in groups, each with the kind of its lines.

    Raises `FileInvalid` if the file is damaged or cut short, after yielding everything before the damage.
    """
    for kind, sized_lines in groupby(_body_lines(path), key=lambda sized_line: str(sized_line[1]["row"])):
        group: list[Line] = []
        group_size = 0
        for size, line in sized_lines:
            group.append(line)
            group_size += size
            if len(group) == LINES_AT_ONCE or group_size > BYTES_AT_ONCE or kind in ("scope", "end"):
                yield kind, group
                group, group_size = [], 0
        if group:
            yield kind, group


def _body_lines(path: Path) -> Iterator[tuple[int, Line]]:
    """Yield the lines between the first and the last, each with its size in bytes."""
    count, is_complete = -1, False
    for _, size, line in read_lines(path, parse_line):
        if line["row"] == "foot":
            is_complete = line.get("lines") == count
            continue
        count += 1
        if count:
            yield size, line
    if not is_complete:
        raise FileInvalid(f"{path} is cut short after {count} lines; import the whole file, it goes on from there")


def _checked_scope_name(name: str) -> str:
    Scope.parse(name)
    return name


def _checked_zone_name(name: str) -> str:
    read_zone(name)
    return name


def _checked_finding_policy(stored: Line) -> Line:
    try:
        FindingPolicy.from_json(stored)
    except (KeyError, TypeError, ValueError):
        raise FileInvalid("the settings for findings of agents cannot be read") from None
    return stored


def _checked_state_columns(stored: Line) -> Line:
    columns = parse_columns(StateRow, stored)
    check_packed_state(columns["content"])
    return columns


class _ScopeShape(LineShape):
    scope: Annotated[str, AfterValidator(_checked_scope_name)]
    policy: ApprovalPolicy = _VALUE
    zone: Annotated[str, AfterValidator(_checked_zone_name)] | None = None
    findings: Annotated[Line, AfterValidator(_checked_finding_policy)] | None = None
    other_people: bool | None = None
    paused_at: AwareDatetime | None = Field(default=None, strict=False)


class _SessionShape(LineShape):
    progress: Progress = _VALUE
    turns: list[Annotated[Line, AfterValidator(partial(parse_columns, TurnRow))]]
    state: Annotated[Line, AfterValidator(_checked_state_columns)] | None = None


class _AssertionShape(LineShape):
    evidence: list[Annotated[Line, AfterValidator(partial(parse_columns, EvidenceRow))]]


class _WindowShape(LineShape):
    assertions: list[str]
    rejections: list[Annotated[Line, AfterValidator(partial(parse_columns, RejectionRow))]]
    findings: list[Annotated[Line, AfterValidator(partial(parse_columns, FindingRow))]] = Field(default_factory=list)


class _RunShape(LineShape):
    id: int
    status: RunStatus = _VALUE
    session_id: str | None = None
    windows: list[Annotated[tuple[str, str], _LIST]]
    verdicts: list[str]
    moved: list[Annotated[tuple[Annotated[str, AfterValidator(_checked_scope_name)], str, str], _LIST]] = Field(
        default_factory=list
    )


_SHAPES: dict[str, type[LineShape]] = {
    "scope": _ScopeShape,
    "session": _SessionShape,
    "assertion": _AssertionShape,
    "window": _WindowShape,
    "run": _RunShape,
}


def parse_line(line: Line) -> Line:
    """Return a line with its fields checked and converted, and with the columns of its table row under "columns".

    A line about forgotten content gets its parsed content as "parsed". Raises `FileInvalid` and `ScopeInvalid`.
    """
    kind, parsed = line["row"], dict(parse_forgotten_content_line(line))
    if kind in _SHAPES:
        parsed |= dict(parse_shape(_SHAPES[kind], line, kind))
    if kind in _TABLES:
        parsed["columns"] = parse_columns(_TABLES[kind], line)
    if kind == "run" and parsed["columns"]["transcript"] is not None:
        unpack_transcript(parsed["columns"]["transcript"])
    return parsed


def mask_line(kind: str, line: Line, privacy: Privacy) -> Line:
    """Return a parsed line with secrets masked, and without what was said off the record."""
    if kind == "session":
        return _masked_session(line, privacy)
    if kind == "assertion":
        return _masked_assertion(line, privacy)
    if kind == "window":
        rejections = [_masked_values(row, privacy, "statement", "detail") for row in line["rejections"]]
        findings = [_masked_finding(row, privacy) for row in line.get("findings", ())]
        return {**line, "rejections": rejections, "findings": findings}
    if kind == "verdict":
        return {**line, "columns": _masked_values(line["columns"], privacy, "reason", "remainder")}
    if kind == "run" and line["columns"]["transcript"] is not None:
        transcript = unpack_transcript(line["columns"]["transcript"])
        masked = pack_transcript(replace(transcript, turns=privacy.mask_and_hide_turns(transcript.turns)))
        return {**line, "columns": {**line["columns"], "transcript": masked}}
    return line


def _masked_session(line: Line, privacy: Privacy) -> Line:
    turns = [turn_of(TurnRow(**turn)) for turn in line["turns"]]
    masked = privacy.mask_and_hide_turns(turns)
    shown = [{**columns, "text": turn.text} for columns, turn in zip(line["turns"], masked, strict=True)]
    state = line["state"]
    if state is not None:
        content = unpack_state(state["content"])
        without_secrets = privacy.mask_state(content, line["columns"]["humans"])
        if without_secrets != content:
            state = {**state, "content": pack_state(without_secrets)}
    return {**line, "turns": shown, "state": state}


def _masked_assertion(line: Line, privacy: Privacy) -> Line:
    columns, evidence = line["columns"], line["evidence"]
    texts = [columns[name] or "" for name in _ASSERTION_TEXTS]
    quotes = [cited["quote"] or "" for cited in evidence]
    masked = privacy.mask_value_and_others(columns["attribute"], *texts, *quotes)
    shown = {name: text or columns[name] for name, text in zip(_ASSERTION_TEXTS, masked, strict=False)}
    # The keys are computed from the texts, since those in the file are not trusted.
    shown |= {"subject_key": folded(shown["subject"]), "attribute_key": folded(shown["attribute"])}
    cited = zip(evidence, masked[len(_ASSERTION_TEXTS) :], strict=True)
    return {**line, "columns": {**columns, **shown}, "evidence": [{**row, "quote": quote} for row, quote in cited]}


def _masked_finding(row: Line, privacy: Privacy) -> Line:
    quotes = [piece["quote"] for piece in row["evidence"]]
    statement, topic, agent, source, *masked = privacy.mask_value_and_others(
        "agent finding", row["statement"], row["topic"], row["agent"], row["source"] or "", *quotes
    )
    evidence = [{**piece, "quote": quote} for piece, quote in zip(row["evidence"], masked, strict=True)]
    return {
        **row,
        "statement": statement,
        "topic": topic,
        "agent": agent,
        "source": source or None,
        "evidence": evidence,
    }


def _masked_values(row: Any, privacy: Privacy, *names: str) -> Any:
    return {**row, **{name: privacy.mask_text(row[name]) for name in names if row.get(name)}}
