"""Masking secrets, and hiding what was off the record, in the lines of an export before they are stored. Pure.

The store that wrote the export may have masked less, or somebody may have edited the file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from afterword.privacy.policy import Privacy
from afterword.store.json_lines import Line
from afterword.store.rows import pack_state, pack_transcript, turn_of, unpack_state, unpack_transcript
from afterword.store.tables import TurnRow

_ASSERTION_TEXTS = ("value", "statement", "subject", "limited_to", "outcome", "former_name")


def mask_line(kind: str, line: Line, privacy: Privacy) -> Line:
    """Return a parsed line without secrets and without what was said off the record."""
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
        masked = pack_transcript(replace(transcript, turns=privacy.mask_turns(transcript.turns)))
        return {**line, "columns": {**line["columns"], "transcript": masked}}
    return line


def _masked_session(line: Line, privacy: Privacy) -> Line:
    turns = [turn_of(TurnRow(**turn)) for turn in line["turns"]]
    masked = privacy.mask_turns(turns)
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
    masked = privacy.mask_fields(columns["attribute"], *texts, *quotes)
    shown = {name: text or columns[name] for name, text in zip(_ASSERTION_TEXTS, masked, strict=False)}
    cited = zip(evidence, masked[len(_ASSERTION_TEXTS) :], strict=True)
    return {**line, "columns": {**columns, **shown}, "evidence": [{**row, "quote": quote} for row, quote in cited]}


def _masked_finding(row: Line, privacy: Privacy) -> Line:
    quotes = [piece["quote"] for piece in row["evidence"]]
    statement, topic, agent, source, *masked = privacy.mask_fields(
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
