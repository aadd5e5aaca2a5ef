"""What an agent is told: never more than the budget, flagged facts first, and a part that stays the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from afterword.facts.assertions import OWNER, Evidence, EvidenceKind, Kind
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import SourceTurn
from afterword.recall.block import FormerFact, MatchingTurn, line_on_missing_facts
from afterword.recall.layers import Layers, LayerSources, LineCache, choose_layers
from afterword.recall.tokens import estimated_token_count

LENA = Scope.user("lena")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABEL = "user-0123456789ab"


def fact(number: int, text: str, kind: Kind = Kind.ENTITY, *, flagged: bool = False) -> Fact:
    said_at = NOON + timedelta(minutes=number)
    return Fact(
        id=f"{number:020d}",
        scope=LENA,
        kind=kind,
        subject=OWNER,
        attribute="note",
        value=text,
        statement=text,
        status=Status.CURRENT,
        said_at=said_at,
        valid_from=said_at,
        valid_to=None,
        support=1,
        evidence=(),
        assertion_ids=(f"{number:020d}",),
        is_flagged=flagged,
    )


memories = st.lists(st.tuples(st.text(max_size=80), st.sampled_from(Kind), st.booleans()), max_size=25).map(
    lambda drawn: [fact(number, text, kind, flagged=flagged) for number, (text, kind, flagged) in enumerate(drawn)]
)
former_facts = st.lists(st.text(max_size=60), max_size=6).map(
    lambda texts: [
        FormerFact(replace(fact(100 + number, text), status=Status.SUPERSEDED, valid_to=NOON + timedelta(days=9)))
        for number, text in enumerate(texts)
    ]
)
turns = st.lists(st.text(max_size=90), max_size=8).map(
    lambda texts: [MatchingTurn(SourceTurn("s1", number, "user", NOON, text)) for number, text in enumerate(texts)]
)


def sources(
    facts: list[Fact], former: list[FormerFact], said: list[MatchingTurn], *, past: bool = False, fits: bool = True
) -> LayerSources:
    newest = facts[::-1]
    return LayerSources(
        all_facts=facts if fits else None,
        flagged_facts=[each for each in newest if each.is_flagged],
        matching_facts=facts[::2],
        latest_facts=newest,
        former_facts=former,
        matching_former_facts=former[::2],
        matching_turns=said,
        is_about_the_past=past,
    )


@given(memories, former_facts, turns, st.booleans(), st.integers(min_value=0, max_value=900))
def test_no_more_is_told_than_the_budget(
    facts: list[Fact], former: list[FormerFact], said: list[MatchingTurn], past: bool, budget: int
) -> None:
    layers = choose_layers(sources(facts, former, said, past=past), label=LABEL, budget_tokens=budget)
    assert estimated_token_count(layers.text) <= budget


@given(memories, former_facts, turns, st.booleans(), st.integers(min_value=0, max_value=900))
def test_flagged_facts_are_all_told_where_they_fit_and_else_the_newest(
    facts: list[Fact], former: list[FormerFact], said: list[MatchingTurn], past: bool, budget: int
) -> None:
    layers = choose_layers(sources(facts, former, said, past=past), label=LABEL, budget_tokens=budget)
    flagged = [each for each in facts if each.is_flagged]
    told = {each.id for each in layers.facts}
    alone = estimated_token_count(choose_layers(sources(flagged, [], []), label=LABEL, budget_tokens=10_000).text)
    if alone <= budget:
        assert {each.id for each in flagged} <= told
        assert layers.missing_fact_count == 0
    else:
        told_flagged = [each for each in flagged if each.id in told]
        assert told_flagged == flagged[len(flagged) - len(told_flagged) :]
        if layers.text:
            assert layers.missing_fact_count == len(flagged) - len(told_flagged)
            assert line_on_missing_facts(layers.missing_fact_count) in layers.text


@given(memories, former_facts, turns, st.booleans())
def test_everything_is_told_where_there_is_room_and_the_first_part_knows_no_question(
    facts: list[Fact], former: list[FormerFact], said: list[MatchingTurn], past: bool
) -> None:
    asked = choose_layers(sources(facts, former, said, past=past), label=LABEL, budget_tokens=50_000)
    silent = choose_layers(sources(facts, former, []), label=LABEL, budget_tokens=50_000)
    assert {each.id for each in asked.facts} == {each.id for each in facts}
    assert len(asked.former_facts) == len(former)
    assert asked.stable_text == silent.stable_text
    assert silent.question_text == ""


@given(memories, former_facts, turns, turns, st.integers(min_value=0, max_value=600))
def test_the_first_part_is_the_same_whatever_is_asked(
    facts: list[Fact], former: list[FormerFact], said: list[MatchingTurn], others: list[MatchingTurn], budget: int
) -> None:
    first = choose_layers(sources(facts, former, said), label=LABEL, budget_tokens=budget)
    second = sources(facts, former, others, past=True)
    second = replace(second, matching_facts=facts[1::3], matching_former_facts=former[1::2])
    assert choose_layers(second, label=LABEL, budget_tokens=budget).stable_text == first.stable_text


def test_a_question_about_the_past_puts_what_held_before_ahead_of_the_tail() -> None:
    facts = [fact(number, f"Lena owns the lamp with the number {number} in her house.") for number in range(200)]
    former = [
        FormerFact(replace(fact(500 + number, f"Lamp {number} was red."), status=Status.SUPERSEDED, valid_to=NOON))
        for number in range(100)
    ]
    past = choose_layers(sources(facts, former, [], past=True, fits=False), label=LABEL, budget_tokens=1_000)
    now = choose_layers(sources(facts, former, [], fits=False), label=LABEL, budget_tokens=1_000)
    assert len(past.former_facts) > len(now.former_facts) > 0
    assert past.facts


def test_nothing_known_is_no_text() -> None:
    assert choose_layers(sources([], [], []), label=LABEL, budget_tokens=100).text == Layers(LABEL).text == ""


def test_lines_are_kept_for_the_next_block() -> None:
    lines = LineCache()
    facts = [fact(number, f"note {number}") for number in range(5)]
    first = choose_layers(sources(facts, [], [], fits=False), label=LABEL, budget_tokens=1_000, lines=lines)
    assert len(lines) == 5, "also if none was there before"
    again = choose_layers(sources(facts, [], [], fits=False), label=LABEL, budget_tokens=1_000, lines=lines)
    assert first.text == again.text
    assert again.lines is lines


def test_turns_that_say_what_no_chosen_fact_says_come_first() -> None:
    """Otherwise a budget is spent on what is told twice. Where there is room, such a turn is told all the same."""
    cited = Evidence(EvidenceKind.TURN, "I moved to Oslo", "s1", 1, "user", 0)
    known = [replace(fact(0, "Lena lives in Oslo."), evidence=(cited,))]
    said = [MatchingTurn(SourceTurn("s1", number, "user", NOON, f"Turn {number} about Oslo")) for number in (1, 2, 3)]
    several = sources(known, [], said, fits=False)
    whole = choose_layers(several, label=LABEL, budget_tokens=2_000)
    assert [each.turn.number for each in whole.turns] == [1, 2, 3]
    less = choose_layers(several, label=LABEL, budget_tokens=estimated_token_count(whole.text) - 1)
    assert [each.turn.number for each in less.turns] == [2, 3]
    assert less.facts == known
