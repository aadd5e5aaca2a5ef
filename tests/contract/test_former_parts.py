"""The part of a sentence that has ended is told as what held before, and nothing of it that was wrong or taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from afterword.facts.assertions import Assertion, Relation, SpeechAct, Verdict
from afterword.store import ledger
from afterword.store.database.engine import Store
from afterword.store.forgetting.erasure import erase_in_scope
from afterword.store.reading.recall import recall
from kept import LENA, SAID_AT, run, stated

NOW = datetime(2026, 6, 1, tzinfo=UTC)
POTTER = stated("Lena is a potter with a workshop in Freiburg.", 1, value="potter with a workshop in Freiburg")
WORKSHOP = stated("Lena's workshop is in Emmendingen.", 2, value="Emmendingen", said_at=SAID_AT + timedelta(days=9))
LEFT = "Lena is a potter with a workshop."
FORMER = "- 2026-03-01 to 2026-03-10: Lena is a potter with a workshop in Freiburg; now: Emmendingen"
QUESTIONS = ("Where was the workshop before?", "Where is the workshop?", "")


def partly(relation: Relation, earlier: Assertion = POTTER, later: Assertion = WORKSHOP, left: str = LEFT) -> Verdict:
    return Verdict(earlier.id, later.id, relation, "because", "test", remainder=left)


async def blocks(store: Store, budget: int = 2000) -> list[str]:
    told = [await recall(store, LENA, question, at=NOW, budget_tokens=budget) for question in QUESTIONS]
    return [recalled.layers.text if recalled.layers else "" for recalled in told]


async def test_the_former_part_is_told_with_its_days_and_its_successor(store: Store) -> None:
    run(store, "session:a", (POTTER,))
    later = run(store, "session:b", (WORKSHOP,), (partly(Relation.CHANGES),))
    for text in await blocks(store):
        assert f"- {LEFT}\n" in text
        assert FORMER in text.split("Held before, and no longer:\n")[1]
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, later, SAID_AT)
    for text in await blocks(store):
        assert "Held before" not in text
        assert POTTER.statement in text


async def test_it_is_told_as_well_where_the_rest_has_ended_later(store: Store) -> None:
    run(store, "session:a", (POTTER,))
    run(store, "session:b", (WORKSHOP,), (partly(Relation.CHANGES),))
    baker = stated("Lena is a baker now and has no workshop.", 3, value="baker", said_at=SAID_AT + timedelta(days=19))
    run(store, "session:c", (baker,), (Verdict(POTTER.id, baker.id, Relation.CHANGES, "because", "test"),))
    for text in await blocks(store):
        former = text.split("Held before, and no longer:\n")[1]
        assert FORMER in former
        assert f"- 2026-03-01 to 2026-03-20: {LEFT[:-1]}; now: baker" in former


async def test_where_not_all_fits_it_is_told_to_a_question_about_it(store: Store) -> None:
    many = [stated(f"Lena planted {number} tulips in bed {number}.", number) for number in range(10, 90)]
    run(store, "session:a", (POTTER, WORKSHOP, *many), (partly(Relation.CHANGES),))
    about, _, other = await blocks(store, 300)
    assert FORMER in about
    assert "Freiburg" not in other


async def test_two_parts_that_ended_one_after_the_other_are_told_as_they_were_just_before(store: Store) -> None:
    style = stated("Lena wants British spelling with APA citations and wide margins.", 1)
    american = stated("Lena wants American spelling.", 2, said_at=SAID_AT + timedelta(days=9))
    narrow = stated("Lena wants narrow margins.", 3, said_at=SAID_AT + timedelta(days=19))
    verdicts = (
        partly(Relation.CHANGES, style, american, "Lena wants APA citations and wide margins."),
        partly(Relation.CHANGES, style, narrow, "Lena wants British spelling with APA citations."),
    )
    run(store, "session:a", (style, american, narrow), verdicts)
    for text in await blocks(store):
        assert "- Lena wants APA citations.\n" in text
        assert "- 2026-03-10 to 2026-03-20: Lena wants APA citations and wide margins; now: " in text


async def test_a_part_that_was_wrong_is_told_nowhere(store: Store) -> None:
    run(store, "session:a", (POTTER, WORKSHOP), (partly(Relation.CORRECTS),))
    for text in await blocks(store):
        assert f"- {LEFT}\n" in text
        assert "Freiburg" not in text


async def test_of_a_part_that_was_wrong_before_another_ended_nothing_is_told(store: Store) -> None:
    wrong = stated("Lena's workshop was always in Emmendingen.", 2, value="Emmendingen")
    baker = stated("Lena is a baker now.", 3, said_at=SAID_AT + timedelta(days=19))
    verdicts = (
        partly(Relation.CORRECTS, later=wrong),
        partly(Relation.CHANGES, later=baker, left="Lena is with a workshop in Freiburg."),
    )
    run(store, "session:a", (POTTER, wrong, baker), verdicts)
    for text in await blocks(store):
        assert "Freiburg" not in text


@pytest.mark.parametrize("is_hidden", [False, True], ids=["forgotten", "asked to forget"])
async def test_what_a_person_forgot_is_told_nowhere(store: Store, is_hidden: bool) -> None:
    run(store, "session:a", (POTTER, WORKSHOP), (partly(Relation.CHANGES),))
    if is_hidden:
        asked = stated("Lena asked to forget the workshop in Freiburg.", 4, act=SpeechAct.ERASE, value="Freiburg")
        run(store, "session:b", (asked,))
    else:
        await erase_in_scope(store, LENA, lambda erasure: erasure.forget_statements([POTTER.id]), at=NOW)
    for text in await blocks(store):
        assert "Freiburg" not in text


async def test_a_trial_that_goes_on_under_other_terms_has_no_former_part(store: Store) -> None:
    trial = stated("The trial runs until March.", 1)
    longer = stated("The trial runs until June.", 2)
    run(store, "session:a", (trial, longer), (Verdict(trial.id, longer.id, Relation.CONTINUES, "on", "test"),))
    for text in await blocks(store):
        assert "Held before" not in text
