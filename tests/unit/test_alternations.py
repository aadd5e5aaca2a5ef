"""Facts that replace each other again and again: leaving changes out that find nothing left changes no fact."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts.assertions import PERSON, Assertion, Authority, Extent, Relation, SpeechAct, Verdict
from afterword.facts.validity.alternations import Alternations
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.facts.validity.timeline import fact_histories, histories_of_pairs
from histories import statement

VALUES = ("Graz", "Oslo", "Porto")


def home(number: int, value: str, hours: int | None = None) -> Assertion:
    """Return the statement of a home, said in a session of its own."""
    said = statement(0, f"s{number:04d}", 1, 0)
    said_at = said.said_at + timedelta(hours=number if hours is None else hours)
    return replace(said, id=f"a{number:04d}", value=value, statement=f"The user lives in {value}.", said_at=said_at)


def verdict(earlier: Assertion, later: Assertion, relation: Relation) -> Verdict:
    return Verdict(earlier.id, later.id, relation, "because", "test")


def relation_of(earlier: Assertion, later: Assertion) -> Relation:
    if later.act is not SpeechAct.STATE:
        return Relation.RETRACTS
    return Relation.SAME if earlier.value == later.value else Relation.CHANGES


def varied(said: Assertion, chance: random.Random) -> Assertion:
    """Return a statement, which is seldom an unusual one."""
    unusual = chance.randrange(60)
    changes: dict[int, dict[str, Any]] = {
        0: {"valid_from": said.said_at - timedelta(hours=5)},
        1: {"valid_to": said.said_at + timedelta(hours=7)},
        2: {"valid_from": said.said_at + timedelta(hours=3)},
        3: {"time_is_guess": True},
        4: {"authority": Authority.AGENT},
        5: {"limited_to": "the summer"},
        6: {"speaker": "tom"},
        7: {"session_id": "s0000"},
        8: {"subject": "Tom"},
    }
    retracts: dict[str, Any] = {"act": chance.choice((SpeechAct.RETRACT, SpeechAct.ERASE))}
    return replace(said, **(retracts if unusual in (9, 10, 11) else changes.get(unusual, {})))


def varied_verdict(judged: Verdict, chance: random.Random) -> Verdict:
    """Return a verdict, which is seldom an unusual one."""
    unusual = chance.randrange(80)
    if unusual < len(Relation):
        return replace(judged, relation=list(Relation)[unusual])
    changes: dict[int, dict[str, Any]] = {
        10: {"judge": PERSON},
        11: {"extent": Extent.WHOLE},
        12: {"extent": Extent.DAYS},
        13: {"remainder": "The user lives."},
        14: {"parts_subjects": True},
        15: {"joins_subjects": True},
    }
    return replace(judged, **changes.get(unusual, {}))


def drawn(seed: int, *, unusual: bool) -> tuple[list[Assertion], list[Verdict]]:
    """Return statements that change to and fro, with verdicts on near ones and on some others."""
    chance = random.Random(seed)
    values = VALUES[: chance.choice((2, 2, 3))]
    hours = sorted(chance.randrange(16 if chance.random() < 0.3 else 90) for _ in range(chance.randrange(2, 14)))
    said = [home(number, chance.choice(values), at) for number, at in enumerate(hours)]
    if unusual:
        said = [varied(each, chance) for each in said]
    said.sort(key=lambda each: each.order)
    extent = chance.choice((None, None, Extent.DAYS, Extent.WHOLE))
    verdicts = []
    for place, earlier in enumerate(said):
        for distance, later in enumerate(said[place + 1 :], 1):
            if chance.random() < 1.2 / distance and earlier.act is SpeechAct.STATE:
                judged = replace(verdict(earlier, later, relation_of(earlier, later)), extent=extent)
                verdicts.append(varied_verdict(judged, chance) if unusual else judged)
    return said, verdicts


def derived(said: list[Assertion], verdicts: list[Verdict]) -> tuple[list[FactHistory], frozenset[str], list[object]]:
    pairs = JudgedPairs(said, verdicts)
    refused = [(refusal.verdict, refusal.reason) for refusal in pairs.refused_retirements]
    return histories_of_pairs(pairs), pairs.hidden_ids(), [refused, pairs.contests, sorted(pairs.broader_restatements)]


@given(st.integers(0, 2**32), st.booleans())
def test_the_facts_are_those_of_all_changes(seed: int, unusual: bool) -> None:
    said, verdicts = drawn(seed, unusual=unusual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alternations, "only_replace_each_other", lambda *_: False)
        of_all_changes = derived(said, verdicts)
    assert derived(said, verdicts) == of_all_changes


def test_plain_moves_to_and_fro_need_only_the_next_change_of_each() -> None:
    said = [home(number, VALUES[number % 2]) for number in range(40)]
    verdicts = [verdict(*pair, relation_of(*pair)) for step in (1, 2) for pair in zip(said, said[step:], strict=False)]
    pairs = JudgedPairs(said, verdicts)
    assert sum(map(len, pairs.retirements.values())) == 39
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alternations, "only_replace_each_other", lambda *_: False)
        assert sum(map(len, JudgedPairs(said, verdicts).retirements.values())) == 400


def _seconds(number_of_moves: int) -> float:
    said = [home(number, VALUES[number % 2]) for number in range(number_of_moves)]
    verdicts = [verdict(*pair, relation_of(*pair)) for step in (1, 2) for pair in zip(said, said[step:], strict=False)]
    before = time.process_time()
    fact_histories(said, verdicts)
    return time.process_time() - before


def test_four_times_the_moves_to_and_fro_take_about_four_times_the_work() -> None:
    # A square takes sixteen times. What another process slows down is not slow each time.
    growths = (_seconds(2_000) / max(_seconds(500), 0.005) for _ in range(5))
    assert any(growth <= 8.0 for growth in growths)
