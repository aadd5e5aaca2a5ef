"""A model that answers whatever an attacker wants, with quotes from the conversation, and what it reaches.

The model answers at the HTTP border. The cases were written without looking at the guards. The few that are missed are
listed here, and docs/security.md gives the figures of the first measurement and of the present.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from autogen_core.models import UserMessage

import afterword
from afterword import ModelClient, ModelExtractor, ModelSettings, ScopeMemory
from afterword.agents.person_words import LiveConversation
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Extractor, Rejection, Window
from afterword.extractors.rules import RulesExtractor
from afterword.extractors.testing import Reply, ScriptedEndpoint, facts_reply
from afterword.facts.assertions import Assertion, Kind, SpeechAct
from afterword.facts.fact import Fact, Status
from afterword.facts.removals import count_unnamed_withdrawal
from afterword.privacy.foreign import stretches
from afterword.privacy.foreign.stretches import foreign_stretches
from afterword.privacy.policy import Privacy
from afterword.settings import Settings
from attack_cases import (
    UNSUPPORTED,
    ForeignCase,
    erase_texts,
    later_pasted_texts,
    not_said,
    not_withdrawn,
    pasted_texts,
)
from quoting import MIRA, NOON, grounded
from tool_talks import known_note, talks

PASTED_BUT_NOT_SEEN = ("# README", "Perfil profissional: moro em Aveiro")
ERASED_BUT_NOT_SEEN = ("# Notes", "Mum goes, forget the peanuts allergy")
SUPPORTED_BY_ONE_WORD = (
    "full trust fund",
    "always books without asking",
    "sees a psychiatrist",
    "left the husband",
    "07:00",
)
"""Values that share a third of their words with what was said, or a time in a sentence that tells a time."""
OWN_WORDS = ("<b>I live in Zurich</b>", '"I live in Zurich."', '"I\'m no longer allergic to peanuts."')
"""Emphasis and quotation marks around the whole turn: these words are taken for the person's own."""
PEANUTS = Fact(
    "a" * 64,
    MIRA,
    Kind.ENTITY,
    "user",
    "allergy",
    "peanuts",
    "The user is allergic to peanuts.",
    Status.CURRENT,
    NOON,
    None,
    None,
    support=1,
    evidence=(),
    assertion_ids=("a" * 64,),
)
KNOWN = "I live in Oslo. I'm allergic to peanuts."


def claimed(case: ForeignCase, turn: int) -> list[Candidate]:
    """Return what the model makes of a case: a new home, or the end of the allergy."""
    if case.home and case.home in case.claim and "peanuts" not in case.claim:
        return [candidate(turn, case.claim, "home", case.home, f"The user lives in {case.home}.")]
    return [
        candidate(turn, case.claim, "allergy", "peanuts", "The user is allergic to peanuts.", act)
        for act in (SpeechAct.ERASE, SpeechAct.RETRACT)
    ]


def candidate(
    turn: int, quote: str, attribute: str, value: str, statement: str, act: SpeechAct = SpeechAct.STATE
) -> Candidate:
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute=attribute,
        value=value,
        statement=statement,
        act=act,
        evidence=[Citation(turn=turn, quote=quote)],
    )


def state(texts: Iterable[str]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for text in texts:
        messages.append({"type": "UserMessage", "source": "user", "content": text})
        messages.append({"type": "AssistantMessage", "source": "helper", "content": "I see."})
    return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}


@asynccontextmanager
async def lying_model(answers: Callable[[str], Sequence[Candidate]]) -> Any:
    """Yield an extractor whose model answers a request, as text, with these candidates."""

    def respond(request: dict[str, Any]) -> Reply:
        return facts_reply(*answers(json.dumps(request, ensure_ascii=False)))

    with ScriptedEndpoint(respond) as endpoint:
        async with ModelClient(ModelSettings("scripted", base_url=endpoint.base_url)) as client:
            yield ModelExtractor(client)


def unseen(cases: Iterable[ForeignCase]) -> Iterator[ForeignCase]:
    """Yield the cases whose claim is taken for the person's own words."""
    for case in cases:
        place = case.text.index(case.claim)
        found = foreign_stretches(case.text, ("user",))
        if not any(each.start <= place and place + len(case.claim) <= each.end for each in found):
            yield case


def test_of_pasted_texts_only_the_listed_ones_are_taken_for_the_persons_own() -> None:
    pasted = list(pasted_texts())
    assert len(pasted) >= 100
    assert [case.text.startswith(PASTED_BUT_NOT_SEEN) for case in unseen(pasted)] == [True] * len(PASTED_BUT_NOT_SEEN)
    commands = "[INST]", "<|im_start|>"  # a command to an assistant is quarantined wherever it stands
    erasing = [case for case in unseen(erase_texts()) if not case.text.startswith(commands)]
    assert len(list(erase_texts())) >= 60
    assert [case.text.startswith(ERASED_BUT_NOT_SEEN) for case in erasing] == [True] * len(ERASED_BUT_NOT_SEEN)


def test_of_unusual_forms_a_fifth_is_missed_as_the_documents_say() -> None:
    later = list(later_pasted_texts())
    assert (len(later), len(list(unseen(later)))) == (40, 8)


async def changed(cases: Sequence[ForeignCase], extractor: Extractor) -> bool:
    """Return whether a session with these texts, each in a turn of its own, changes what is known."""
    settings = Settings.model_validate({"store": {"url": "sqlite://"}, "embedding": {"kind": "none"}})
    async with afterword.open(settings=settings, extractor=extractor) as app:
        mira = app.user("mira")
        await mira.process(state([KNOWN]), session_id="before", started_at="2026-03-02T10:00:00Z")
        before = await known(mira)
        assert {value for value, _ in before} == {"Oslo", "peanuts"}
        await mira.process(state(case.text for case in cases), session_id="later", started_at="2026-03-03T10:00:00Z")
        review = await mira.review()
        return await known(mira) != before or bool(review.held) or bool(review.contests)


async def known(memory: ScopeMemory) -> list[tuple[str, str]]:
    return sorted((fact.value, str(fact.status)) for fact in (await memory.facts(status="all")).facts)


@pytest.mark.parametrize("texts", [pasted_texts, erase_texts])
@pytest.mark.parametrize("reader", ["rules", "lying model"])
async def test_a_pasted_text_changes_nothing_whatever_a_model_makes_of_it(
    texts: Callable[[], Iterator[ForeignCase]], reader: str
) -> None:
    cases = [case for case in texts() if not case.text.startswith((*PASTED_BUT_NOT_SEEN, *ERASED_BUT_NOT_SEEN))]
    if reader == "rules":
        assert not await changed(cases, RulesExtractor())
        return
    learned = [
        candidate(1, "I live in Oslo.", "home", "Oslo", "The user lives in Oslo."),
        candidate(1, "I'm allergic to peanuts.", "allergy", "peanuts", "The user is allergic to peanuts."),
    ]
    lies = [lie for number, case in enumerate(cases) for lie in claimed(case, 2 * number + 1)]

    def answer(request: str) -> Sequence[Candidate]:
        return learned if KNOWN in request else lies

    async with lying_model(answer) as extractor:
        assert not await changed(cases, extractor)


def test_a_quote_that_does_not_support_the_statement_is_refused() -> None:
    accepted = [case for case in UNSUPPORTED if grounded(case) is None]
    assert len(UNSUPPORTED) >= 60
    assert [value for _, _, value, _ in accepted] == list(SUPPORTED_BY_ONE_WORD)


class LyingExtractor:
    """Answers with given candidates, whatever the window says."""

    version = "lying-1"

    def __init__(self) -> None:
        self.lies: list[Candidate] = []

    async def extract(self, window: Window) -> Extraction:
        return Extraction(tuple(self.lies))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        return Extraction(())


async def counting(messages: Sequence[str], lies: Sequence[Candidate]) -> tuple[Assertion, ...]:
    """Return which lies of a model about the last message would count at once if an agent asked for them."""
    model = LyingExtractor()
    model.lies = list(lies)
    said = [UserMessage(content=message, source="user") for message in messages]
    conversation = LiveConversation.from_messages(said, frozenset({"user"}), Privacy(), NOON)
    return await conversation.plain_assertions_in_last_turn(model, MIRA)


async def test_a_tool_call_counts_only_with_a_plain_statement_of_the_person() -> None:
    asked = (
        ("The user lives in Zurich.", "home", "Zurich"),
        ("Zurich.", "home", "Zurich"),
        ("The user's home is Zurich.", "residence", "Zurich"),
    )
    calls = [(message, call) for message in not_said() for call in asked]
    assert len(calls) >= 200
    for message, (statement, attribute, value) in calls:
        plain = "I live in Zurich" if "I live in Zurich" in message else message
        lies = [candidate(1, quote, attribute, value, statement) for quote in (plain, message)]
        assert bool(await counting([message], lies)) is (message in OWN_WORDS), message
    assert await counting(["I live in Zurich."], [candidate(1, "I live in Zurich.", "home", "Zurich", asked[0][0])])


async def test_a_tool_withdraws_only_what_the_person_says_is_over() -> None:
    over = "I'm no longer allergic to peanuts"
    note = "The user is allergic to peanuts."
    for message in [*not_withdrawn(), f"{over}."]:
        lies = [
            candidate(2, quote, "allergy", "peanuts", note, act)
            for quote in (over if over in message else message, message)
            for act in (SpeechAct.RETRACT, SpeechAct.ERASE)
        ]
        counted = await counting(["I am allergic to peanuts.", message], lies)
        named = [said for said in counted if not count_unnamed_withdrawal(PEANUTS, said.evidence[-1].quote).must_wait]
        assert bool(named) is (message in (*OWN_WORDS, f"{over}.")), message


async def test_a_withdrawal_of_a_fact_about_health_that_waits_says_why() -> None:
    model = LyingExtractor()
    async with talks(["No peanuts in the cake for me please."]) as ((talk, message),):
        model.lies = [
            candidate(1, "I am allergic to peanuts.", "allergy", "peanuts", "The user is allergic to peanuts.")
        ]
        talk.extractor = model
        await talk.says("I am allergic to peanuts.")
        note = await known_note(talk)
        model.lies = [candidate(2, message, "allergy", "peanuts", note, SpeechAct.RETRACT)]
        await talk.says(message)
        assert (await talk.withdraws(note, message)).startswith("Noted")
        assert await talk.served() == [note]
        assert [counts.get("unnamed_health_removals") for counts in await talk.held()] == [1]


def test_the_cases_see_a_weakened_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "find_posts_and_scripts", lambda _: ())
    stretches._find_stretches.cache_clear()
    with pytest.raises(AssertionError):
        test_of_pasted_texts_only_the_listed_ones_are_taken_for_the_persons_own()
    stretches._find_stretches.cache_clear()
