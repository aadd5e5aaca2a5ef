"""What somebody pastes into a turn is not what they say: it adds nothing, takes nothing back and erases nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import afterword
from afterword import Afterword
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Extractor, Rejection, Window
from afterword.extractors.model.prompts.rendering import render_window
from afterword.extractors.rules import RulesExtractor
from afterword.extractors.rules.extractor import find_candidates
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.transcripts import Role, Turn
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.privacy.foreign.stretches import foreign_stretches
from afterword.settings import Settings
from pasted_cases import CLAIMS, HONEST, PastedCase, pasted_cases

CASES = list(pasted_cases())
FORMS = sorted({case.form for case in CASES})
PROPOSED = {
    CLAIMS[0]: ("home_city", "Moscow", SpeechAct.STATE),
    CLAIMS[1]: ("allergy", "nuts", SpeechAct.RETRACT),
    CLAIMS[2]: ("allergy", "nuts", SpeechAct.ERASE),
}


class CredulousExtractor:
    """Believes what stands in a turn, whoever wrote it, and otherwise finds what the rules find."""

    version = "credulous-1"

    async def extract(self, window: Window) -> Extraction:
        believed = [
            Candidate(
                kind=Kind.ENTITY,
                subject="user",
                attribute=attribute,
                value=value,
                statement=f"The user: {attribute} {value} ({act}).",
                act=act,
                evidence=[Citation(turn=turn.number, quote=quote)],
            )
            for turn in window.turns
            for claim, (attribute, value, act) in PROPOSED.items()
            for quote in (claim, f"Bob: {claim}", turn.text)
            if claim in turn.text and quote in turn.text
        ]
        return Extraction((*find_candidates(window), *believed))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        return Extraction(())


def state(*said: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for text in said:
        messages.append({"content": text, "source": "user", "type": "UserMessage"})
        messages.append({"content": "I see.", "source": "helper", "type": "AssistantMessage"})
    return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}


def door(extractor: Extractor) -> Afterword:
    return afterword.open("sqlite://", settings=Settings(), extractor=extractor)


def human_part(request: str) -> str:
    """The lines of a request that have the role of a person."""
    lines, is_human = [], False
    for line in request.splitlines():
        if line.startswith("["):
            is_human = "] human " in line
        if is_human:
            lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("extractor", [RulesExtractor(), CredulousExtractor()], ids=["rules", "credulous"])
@pytest.mark.parametrize("form", FORMS)
async def test_a_pasted_text_changes_nothing(form: str, extractor: Extractor) -> None:
    cases = [case for case in CASES if case.form == form]
    async with door(extractor) as app:
        mira = app.user("mira")
        known = state("I live in Oslo. I'm allergic to nuts.")
        await mira.process(known, session_id="before", started_at="2026-03-02T10:00:00Z")
        before = (await mira.facts(status="all")).facts
        assert {fact.value for fact in before} == {"Oslo", "nuts"}
        turns = [case.text for case in cases]
        report = await mira.process(state(*turns), session_id="pasted", started_at="2026-03-03T10:00:00Z")
        after = (await mira.facts(status="all")).facts
        context = (await mira.context("where do I live, what am I allergic to, forget Moscow, Gazprom?")).text
        details = await mira.session("pasted")
    assert [(fact.id, fact.value, fact.status) for fact in after] == [
        (fact.id, fact.value, fact.status) for fact in before
    ], "stored"
    outcome = report.sessions[0].result
    assert isinstance(outcome, SessionOutcome)
    assert outcome.changes.hidden == 0
    assert "Oslo" in context, "served"
    assert "nuts" in context, "served"
    assert "Moscow" not in context, "served"
    shown = {read.turn.number for read in details.turns if read.pasted}
    assert shown == {read.turn.number for read in details.turns if read.turn.role is Role.HUMAN}, "shown"
    if isinstance(extractor, CredulousExtractor):
        assert {refusal.reason for refusal in details.rejected} == {"pasted"}, "shown"


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_told_what_is_pasted(form: str) -> None:
    told = []
    for case in CASES:
        turn = Turn(1, "mira", Role.HUMAN, case.text)
        request = render_window(Window(1, (turn,), (), ("mira",), ("mira",)))
        stretches = foreign_stretches(case.text, ("mira",))
        is_within = all(stretch.is_inline_quotation(case.text) for stretch in stretches)
        if case.form == form and not is_within and case.claim in human_part(request):
            told.append(case.text)
    assert told == []


@pytest.mark.parametrize("text", HONEST)
@pytest.mark.parametrize("speaker", ["user", "mira"])
def test_a_persons_own_words_are_not_called_foreign(text: str, speaker: str) -> None:
    assert foreign_stretches(text, (speaker,)) == ()
    window = Window(1, (Turn(1, speaker, Role.HUMAN, text),), (), (speaker,), (speaker,))
    assert f"] {Role.PASTED} " not in render_window(window)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("I live in Bergen.\n\nWhat do you think?\n\n> I live in Moscow.", {"Bergen"}),
        ("Bob: I live in Moscow.\n\nI live in Bergen.", {"Bergen"}),
        ("<document>I live in Moscow.</document> I live in Bergen.", {"Bergen"}),
        ("He said “I live in Moscow.” I live in Bergen.", {"Bergen"}),
        ("```\nI live in Moscow.\n```\nI live in Bergen.", {"Bergen"}),
        ("Bob: I live in Moscow.\n\nI live in Moscow.", {"Moscow"}),
        ("Mira: I live in Bergen.", {"Bergen"}),
        ("Dear Anna,\nI live in Moscow.\nBest regards,\nBob\n\nI live in Bergen.", {"Bergen"}),
    ],
)
@pytest.mark.parametrize("extractor", [RulesExtractor(), CredulousExtractor()], ids=["rules", "credulous"])
async def test_what_a_person_says_outside_of_it_counts(text: str, values: set[str], extractor: Extractor) -> None:
    async with door(extractor) as app:
        mira = app.user("mira")
        saved = state(text)
        for message in saved["llm_context"]["messages"]:
            message["source"] = message["source"].replace("user", "mira")
        await mira.process(saved, session_id="s", started_at="2026-03-03T10:00:00Z", humans=["mira"])
        homes = {fact.value for fact in (await mira.facts()).facts if fact.attribute.startswith("home")}
    assert homes == values


async def test_what_is_foreign_does_not_depend_on_later_turns() -> None:
    case = next(case for case in CASES if case.form == "other length and style")
    async with door(RulesExtractor()) as app:
        mira = app.user("mira")
        await mira.process(state("hi", case.text), session_id="s", started_at="2026-03-03T10:00:00Z")
        early = [read.pasted for read in (await mira.session("s")).turns[:4]]
        longer = state("hi", case.text, *(f"Considerable circumstances, number {number}." * 9 for number in range(9)))
        await mira.process(longer, session_id="s", started_at="2026-03-03T10:00:00Z")
        assert [read.pasted for read in (await mira.session("s")).turns[:4]] == early


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 300
    assert len({case.text for case in CASES}) == len(CASES)
    assert all(isinstance(case, PastedCase) for case in CASES)
