"""Candidates of one fact with their quotes, and whether grounding refuses them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Rejection
from afterword.extractors.grounding import ground
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript, Turn

MIRA = Scope.user("mira")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
P, A = Role.HUMAN, Role.AGENT

Case = tuple[tuple[tuple[Role, str], ...], tuple[tuple[int, str], ...], str, str]
"""The turns, the cited quotes by turn, the value and the statement."""


def one(text: str, quote: str, value: str, statement: str) -> Case:
    """Return a case in which a person says one turn, and one quote of it is cited."""
    return ((P, text),), ((1, quote),), value, statement


def grounded(case: Case, act: SpeechAct = SpeechAct.STATE, **more: Any) -> str | None:
    """Return the reason of the refusal, None if the candidate became an assertion."""
    refused = refusals(case, act, **more)
    return refused[0].reason if refused else None


def refusals(case: Case, act: SpeechAct = SpeechAct.STATE, **more: Any) -> tuple[Rejection, ...]:
    """Return the refusal of a candidate, none if it became an assertion."""
    said, cited, value, statement = case
    turns = tuple(
        Turn(number, {P: "user", A: "helper"}.get(role, "tool"), role, text, NOON)
        for number, (role, text) in enumerate(said, 1)
    )
    proposed = Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute="fact",
        value=value,
        statement=statement,
        evidence=[Citation(turn=turn, quote=quote) for turn, quote in cited],
        act=act,
        **{"accepted_in": cited[-1][0], **more},
    )
    transcript = Transcript(turns, "test", humans=("user",))
    outcome = ground([proposed], transcript, scope=MIRA, session_id="s", owners=("user",))
    assert bool(outcome.assertions) is not bool(outcome.rejections)
    return outcome.rejections
