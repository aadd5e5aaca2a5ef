"""The pairs that a judge is shown: none of one slot is left out, and the others are bounded in any order of arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from afterword.extractors.judge import pairs_a_statement
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.judge import LONGEST_NAME, MOST_NAMES, PAIRS_A_STATEMENT, ModelJudge, pairs_block
from afterword.extractors.rules import RulesJudge
from afterword.facts.assertions import Assertion, Cue, Kind, Relation, SpeechAct, Verdict
from afterword.facts.knowledge import Knowledge
from afterword.facts.similarity import IndexedStatement
from afterword.pipeline.resolution import WITHDRAWAL_PAIRS, required_pairs
from histories import day, statement

SUBJECTS = ("user", "user", "the mill", "Ada Roth")
ATTRIBUTES = ("flour", "flour_supplier", "bread_flour", "delivery_days", "delivery_price", "ovens", "oven_price")
WORDS = ("rye flour", "wheat flour", "Ada Roth", "delivery on Monday", "the oven", "a price of 40", "the mill")
ACTS = (*[SpeechAct.STATE] * 8, SpeechAct.RETRACT, SpeechAct.ERASE)


@st.composite
def scopes(draw: st.DrawFn, most: int = 40) -> list[Assertion]:
    """Statements of several sessions that have many words in common."""
    statements = []
    for number in range(draw(st.integers(2, most))):
        words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True))
        session = draw(st.integers(1, 12))
        drawn = replace(
            statement(0, f"s{session:02d}", number, session),
            id=f"a{number:03d}",
            act=draw(st.sampled_from(ACTS)),
            kind=Kind.ENTITY,
            subject=draw(st.sampled_from(SUBJECTS)),
            attribute=draw(st.sampled_from(ATTRIBUTES)),
            value=" and ".join(words),
            statement=f"For now it is {' with '.join(words)}.",
            cue=draw(st.sampled_from((None, Cue.CHANGE))),
            limited_to=None,
            said_at=day(session),
        )
        statements.append(drawn)
    return statements


def ids(pairs: Iterable[tuple[Assertion, Assertion]]) -> set[tuple[str, str]]:
    return {(earlier.id, later.id) for earlier, later in pairs}


def selected(new: Sequence[Assertion], known: Sequence[Assertion], most: int | None) -> set[tuple[str, str]]:
    return ids(required_pairs(new, Knowledge.of(1, known, ()), pairs_a_statement=most))


@given(scopes(), st.integers(1, 4))
def test_no_pair_of_one_slot_is_left_out(statements: list[Assertion], most: int) -> None:
    everything, chosen = (selected(statements, statements, limit) for limit in (None, most))
    by_id = {said.id: said for said in statements}
    assert chosen <= everything
    left_out = [(by_id[earlier], by_id[later]) for earlier, later in everything - chosen]
    assert [pair for pair in left_out if pair[0].slot == pair[1].slot or pair[1].act is SpeechAct.ERASE] == []


@given(scopes(), st.integers(1, 4))
def test_a_statement_has_a_bounded_number_of_pairs_with_other_slots(statements: list[Assertion], most: int) -> None:
    by_id = {said.id: said for said in statements}
    pairs = selected(statements, statements, most)
    counts = Counter(later for earlier, later in pairs if by_id[earlier].slot != by_id[later].slot)
    for id_, count in counts.items():
        if not IndexedStatement.of(by_id[id_]).is_vague_retraction:
            assert count <= (most if by_id[id_].act is SpeechAct.STATE else WITHDRAWAL_PAIRS)


@given(st.data(), scopes(), st.integers(1, 4))
@settings(max_examples=60)
def test_a_selection_depends_on_the_order_of_arrival_no_more_than_all_pairs_do(
    data: st.DataObject, statements: list[Assertion], most: int
) -> None:
    """What is left to consolidation would be left to it without a selection too."""
    session_ids = data.draw(st.permutations(sorted({said.session_id or "" for said in statements})))

    def left_to_consolidation(limit: int | None) -> set[tuple[str, str]]:
        known, judged = Knowledge.of(0, (), ()), set[tuple[str, str]]()
        for session_id in session_ids:
            new = [said for said in statements if said.session_id == session_id]
            known = known.revised(known.revision + 1, added=new)
            judged |= ids(required_pairs(new, known, pairs_a_statement=limit))
        return selected(statements, statements, limit) - judged

    assert left_to_consolidation(most) <= left_to_consolidation(None)


def flour(number: int, attribute: str, value: str) -> Assertion:
    said = statement(0, f"s{number:02d}", number, number)
    return replace(
        said,
        id=f"f{number:02d}",
        act=SpeechAct.STATE,
        subject="user",
        attribute=attribute,
        value=value,
        statement=f"The {attribute} is {value} flour.",
        cue=None,
        limited_to=None,
    )


def test_what_was_replaced_comes_after_what_was_not() -> None:
    """Former values of another slot do not take the places of what holds."""
    former = [flour(number, "bread_flour", f"rye {number}") for number in range(1, 10)]
    current, new = flour(10, "bread_flour", "spelt"), flour(11, "cake_flour", "rye 12")
    chain = [*former, current]
    changes = [Verdict(earlier.id, later.id, Relation.CHANGES, "", "model") for earlier, later in pairwise(chain)]
    known = Knowledge.of(1, [*chain, new], [])
    replaced = Knowledge.of(1, [*chain, new], changes)
    assert ids(required_pairs([new], known, pairs_a_statement=1)) != {(current.id, new.id)}
    assert ids(required_pairs([new], replaced, pairs_a_statement=1)) == {(current.id, new.id)}


def test_only_a_judge_that_makes_calls_has_a_selection() -> None:
    client = ModelClient(ModelSettings("relay", base_url="http://127.0.0.1:1/v1", api_key="local"))
    assert pairs_a_statement(ModelJudge(client)) == PAIRS_A_STATEMENT
    assert pairs_a_statement(RulesJudge()) is None


def test_a_few_other_names_are_shown_where_a_subject_occurs_first() -> None:
    earlier, later = (replace(flour(number, "oven", f"oven {number}"), subject="Ada") for number in (1, 2))
    names = {"ada": ["Ada Roth", "the mill owner", "x" * 100, "a fourth name"]}
    block = pairs_block({1: (earlier, later)}, names)
    assert block.count("also called") == 1
    assert "Ada Roth" in block
    assert "x" * LONGEST_NAME in block
    assert "x" * (LONGEST_NAME + 1) not in block
    assert "a fourth name" not in block
    assert MOST_NAMES == 3
    assert "also called" not in pairs_block({1: (earlier, later)}, {})
    renamed = replace(earlier, former_name="Ada Roth")
    assert pairs_block({1: (renamed, later)}, {"ada": ["Ada Roth"]}).count("Ada Roth") == 1
