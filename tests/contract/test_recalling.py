"""Recall over every database: what is served, what is kept from being served, and when what is kept is right."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from afterword.facts.assertions import (
    OWNER,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.fact import Status
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.recall.tokens import estimated_token_count
from afterword.recall.vectors import EmbeddingUnavailable, Vector
from afterword.store import ledger, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.reading.recall import Recall, recall, search
from afterword.store.reading.scope_vectors import refresh_vectors
from afterword.store.reading.view_cache import ViewCache, view_cache_of
from afterword.store.reading.views import MADE_BYTES, View
from afterword.store.tables import VectorRow

LENA = Scope.user("lena")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=30)
SAID = {
    1: "I live in Graz these days.",
    2: "My sister Mara moved to Lyon.",
    3: "I have moved to Linz now.",
    4: "Forget what I said about the diet.",
    5: "My bicycle is a red tandem.",
}


def stated(number: int, statement: str, *, scope: Scope = LENA, **changes: Any) -> Assertion:
    said: dict[str, Any] = {
        "id": f"{scope.id}-{number}",
        "scope": scope,
        "session_id": "s1",
        "act": SpeechAct.STATE,
        "kind": Kind.ENTITY,
        "subject": OWNER,
        "attribute": "note",
        "value": "",
        "statement": statement,
        "speaker": "user",
        "authority": Authority.STATED,
        "said_at": NOON + timedelta(minutes=number),
        "evidence": (Evidence(EvidenceKind.TURN, SAID.get(number, statement), "s1", number, "user", 0),),
    }
    return Assertion(**{**said, **changes})


async def keep(store: Store, *said: Assertion, verdicts: Sequence[Verdict] = (), scope: Scope = LENA) -> None:
    with store.writing() as transaction:
        revision = scope_rows.revision_of(transaction, scope)
        reading = WindowReading(f"window {revision}", 1, 9, said)
        run = Proposal(scope, "session:s1", "session", "t", "t", NOON, revision, (reading,), tuple(verdicts))
        ledger.apply_run(transaction, scope, ledger.propose_run(transaction, run), NOON)
        turns = tuple(Turn(number, "user", Role.HUMAN, words, NOON) for number, words in SAID.items())
        sessions.save_transcript(transaction, scope, "s1", Transcript(turns, "test", ("user",)), NOON, is_done=True)


async def moved(store: Store) -> None:
    """Lena lived in Graz, and has moved to Linz."""
    graz, linz = stated(1, "Lena lives in Graz."), stated(3, "Lena lives in Linz.")
    changes = Verdict(graz.id, linz.id, Relation.CHANGES, "moved", "test")
    await keep(store, graz, stated(2, "Mara lives in Lyon.", subject="Mara"), linz, verdicts=[changes])


def told(found: Recall) -> list[str]:
    return [fact.statement for fact in found.facts]


async def test_a_fact_brings_the_turn_it_rests_on(store: Store) -> None:
    await moved(store)
    found = await search(store, LENA, "where does Mara live", at=LATER, turns=True)
    assert told(found)[0] == "Mara lives in Lyon."
    assert SAID[2] in [turn.text for turn in found.turns]
    assert (await search(store, LENA, "Mara", at=LATER)).turns == ()


async def test_a_turn_of_what_holds_no_longer_is_never_shown(store: Store) -> None:
    """Whoever reads "I live in Graz these days" cannot know that it is over."""
    await moved(store)
    for query in ("Graz", "where does Lena live"):
        found = await search(store, LENA, query, at=LATER, turns=True)
        assert SAID[1] not in [turn.text for turn in found.turns]


async def test_a_turn_that_takes_something_back_is_never_shown(store: Store) -> None:
    diet = stated(5, "Lena is on a diet and rides a tandem.")
    gone = stated(4, "The diet is nobody's business.", act=SpeechAct.RETRACT, evidence=diet.evidence)
    await keep(store, diet, gone, stated(2, "Mara lives in Lyon."))
    found = await search(store, LENA, "tandem bicycle Lyon", at=LATER, turns=True)
    assert [turn.text for turn in found.turns] == [SAID[2]]


async def test_only_questions_about_the_past_find_what_held_once_and_it_is_marked(store: Store) -> None:
    await moved(store)
    now = told(await search(store, LENA, "does Lena live in Graz", at=LATER))
    assert set(now) == {"Lena lives in Linz.", "Mara lives in Lyon."}
    found = await recall(store, LENA, "where did Lena live before that, in Graz?", at=LATER, budget_tokens=600)
    [past] = found.former
    assert (past.fact.statement, past.fact.status) == ("Lena lives in Graz.", Status.SUPERSEDED)
    assert found.layers is not None
    assert "- 2026-03-01: Lena lives in Graz; now: Lena lives in Linz" in found.layers.stable_text
    assert all(fact.is_served for fact in found.facts)


async def test_what_is_kept_is_right_when_another_process_writes(store: Store) -> None:
    await keep(store, stated(1, "Lena lives in Graz."))
    assert told(await search(store, LENA, "lives", at=LATER)) == ["Lena lives in Graz."]
    await moved(store)
    assert "Lena lives in Linz." in told(await search(store, LENA, "lives", at=LATER))


async def test_what_is_kept_is_used_until_the_next_fact_begins_or_ends(store: Store) -> None:
    await keep(store, stated(1, "Lena is in Oslo.", valid_to=NOON + timedelta(days=5)), stated(2, "Lena likes tea."))
    kept = view_cache_of(store)
    early, soon = NOON + timedelta(days=1), NOON + timedelta(days=2)
    assert await kept.view(store, LENA, early) is await kept.view(store, LENA, soon)
    assert told(await search(store, LENA, "Lena", at=NOON + timedelta(days=6))) == ["Lena likes tea."]
    assert len(told(await search(store, LENA, "Lena", at=early))) == 2


def ranked_ids(view: View, query: str) -> list[tuple[object, float]]:
    return [(unit.id, score) for unit, score in view.index.ranked_units(query)]


async def same_as_anew(store: Store) -> None:
    """What is carried on from one revision to the next must be what a process that knows nothing reads."""
    new = ViewCache()
    carried, anew = await view_cache_of(store).view(store, LENA, LATER), await new.view(store, LENA, LATER)
    new.close()
    assert carried.snapshot.version == anew.snapshot.version
    assert list(carried.facts_at(carried.served_fact_places())) == list(anew.facts_at(anew.served_fact_places()))
    assert {unit.id for unit in carried.served_units()} == {unit.id for unit in anew.served_units()}
    assert carried.snapshot.unlinked_turns == anew.snapshot.unlinked_turns
    for query in ("where in Graz or Linz", "tandem bicycle", "Mara in Lyon", "diet"):
        assert ranked_ids(carried, query) == ranked_ids(anew, query)


async def test_what_is_carried_on_is_what_a_new_reading_gives(store: Store) -> None:
    many = [stated(number, f"Lena keeps lamp {number}.") for number in range(10, 30)]
    graz, mara = stated(1, "Lena lives in Graz."), stated(2, "Mara lives in Lyon.", subject="Mara")
    linz, diet = stated(3, "Lena lives in Linz."), stated(5, "Lena is on a diet and rides a tandem.")
    gone = stated(4, "The diet is nobody's business.", act=SpeechAct.RETRACT, evidence=diet.evidence)
    changes = Verdict(graz.id, linz.id, Relation.CHANGES, "moved", "test")
    for said, verdicts in (
        ([*many, graz, diet], []),
        ([*many, graz, mara, diet], []),
        ([*many, graz, mara, linz, diet], [changes]),
        ([*many, graz, mara, linz, diet, gone], [changes]),
        ([*many[3:], mara], []),
    ):
        await keep(store, *said, verdicts=verdicts)
        await same_as_anew(store)


async def test_what_has_not_changed_is_not_read_again_after_a_run(store: Store) -> None:
    many = [stated(number, f"Lena keeps lamp {number}.") for number in range(10, 30)]
    await keep(store, *many)
    before = await view_cache_of(store).view(store, LENA, LATER)
    await keep(store, *many, stated(1, "Lena lives in Graz."))
    after = await view_cache_of(store).view(store, LENA, LATER)
    new = [unit.id for unit in after.served_units() if unit not in before.served_units()]
    assert sorted(map(str, new)) == [str(("s1", 1)), "lena-1"]


async def test_everything_is_read_again_after_what_is_no_run(store: Store) -> None:
    """Forgetting covers words in place; only its revision tells."""
    await keep(store, stated(1, "Lena lives in Graz."), *[stated(one, f"Lamp {one}.") for one in range(10, 20)])
    await view_cache_of(store).view(store, LENA, LATER)
    with store.connecting(writing=True) as connection:
        connection.execute(text("UPDATE assertions SET statement = 'Lena lives.' WHERE id = 'lena-1'"))
        connection.execute(text("UPDATE scopes SET revision = revision + 1"))
    assert told(await search(store, LENA, "who lives", at=LATER)) == ["Lena lives."]
    await same_as_anew(store)


async def test_another_scopes_change_leaves_a_view_as_it_is(store: Store) -> None:
    tom = Scope.user("tom")
    await keep(store, stated(1, "Lena likes tea."))
    kept = view_cache_of(store)
    before = await kept.view(store, LENA, LATER)
    await keep(store, stated(1, "Tom likes tea.", scope=tom), scope=tom)
    assert await kept.view(store, LENA, LATER) is before
    assert told(await search(store, LENA, "tea", at=LATER)) == ["Lena likes tea."]


async def test_what_is_remembered_is_bounded_and_the_longest_unused_goes_first(store: Store) -> None:
    scopes = [Scope.user(f"user{number}") for number in range(4)]
    for scope in scopes:
        await keep(store, stated(1, "Likes tea.", scope=scope), stated(2, "Likes jam.", scope=scope), scope=scope)
    size = (await view_cache_of(store).view(store, scopes[0], LATER)).memory_bytes
    kept = ViewCache(most_bytes=5 * size // 2)
    for scope in (scopes[0], scopes[1], scopes[0], scopes[2]):
        await kept.view(store, scope, LATER)
    assert [kept.cached_revision(scope) is not None for scope in scopes] == [True, False, True, False]
    kept.close()


async def test_what_a_view_computes_of_its_rows_counts_too(store: Store) -> None:
    await keep(store, *(stated(number, f"Lena likes tea {number}.") for number in range(50)))
    views = ViewCache()
    view = await views.view(store, LENA, LATER)
    before = view.memory_bytes
    assert len((await search(store, LENA, "", at=LATER, views=views)).facts) == 50
    assert view.memory_bytes >= before + 50 * MADE_BYTES
    views.close()


async def test_a_view_takes_about_the_memory_that_it_says(store: Store) -> None:
    statements = [
        stated(number, f"Lena rode her tandem to village {number}, {'far ' * 20}away.") for number in range(400)
    ]
    await keep(store, *statements)
    # What is loaded and compiled once is no part of a view.
    await keep(store, stated(400, "Mara rides a tandem."), scope=Scope.user("mara"))
    await search(store, Scope.user("mara"), "tandem", at=LATER)
    tracemalloc.start()
    try:
        view = await ViewCache().view(store, LENA, LATER)
        await search(store, LENA, "tandem", at=LATER)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 3 < view.memory_bytes < 2 * taken


async def test_a_limit_counts_only_what_is_asked_for(store: Store) -> None:
    likes = [stated(number, f"Lena likes her old tandem, ride {number}.", kind=Kind.PREFERENCE) for number in (1, 2, 3)]
    await keep(store, *likes, *(stated(number, "A tandem.") for number in range(5, 30)))
    for kinds, turns in ((None, False), (None, True), ({Kind.PREFERENCE}, False), ({Kind.PREFERENCE}, True)):
        every = await search(store, LENA, "red tandem", at=LATER, kinds=kinds, turns=turns)
        some = await search(store, LENA, "red tandem", at=LATER, kinds=kinds, turns=turns, limit=2)
        assert len(some.facts) + len(some.turns) == 2
        assert some.facts == every.facts[: len(some.facts)]
        assert some.scores == every.scores[: len(some.facts)]
        assert some.turns == every.turns[: len(some.turns)]


async def test_facts_and_turns_share_one_budget(store: Store) -> None:
    many = [stated(number, f"Lena keeps tandem number {number}.") for number in range(5, 90)]
    await keep(store, *many)
    for budget in (0, 60, 100, 150, 300):
        found = await recall(store, LENA, "red tandem bicycle", at=LATER, budget_tokens=budget)
        assert found.layers is not None
        assert estimated_token_count(found.layers.text) <= budget
    assert SAID[5] in [turn.text for turn in found.turns]
    assert found.layers is not None
    assert f'user: "{SAID[5]}"' in found.layers.question_text


class Counted:
    """An embedder of our own: a vector tells how often each of three words stands in a text."""

    def __init__(self, model: str = "counted", *words: str) -> None:
        self.model = model
        self.words = words or ("tandem", "tea", "moon")
        self.dimension = len(self.words)
        self.asked: list[str] = []
        self.is_down = False

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self.is_down:
            raise EmbeddingUnavailable("the endpoint is down")
        self.asked += texts
        return [[float(one.lower().count(word)) + 0.1 for word in self.words] for one in texts]


async def rows(store: Store) -> list[tuple[str, int, str]]:
    with store.reading() as transaction:
        return sorted((one.model, one.dimension, one.key) for one in transaction.exec(select(VectorRow)))


async def test_vectors_are_made_once_by_model_and_dropped_with_their_words(store: Store) -> None:
    await keep(store, stated(1, "Lena likes tea."), stated(2, "Lena sees the moon."))
    first, second = Counted(), Counted("other", "tea", "moon")
    assert await refresh_vectors(store, LENA, first, at=LATER) == 4
    assert await refresh_vectors(store, LENA, first, at=LATER) == 0
    assert await refresh_vectors(store, LENA, second, at=LATER) == 4
    assert {(model, dimension) for model, dimension, _ in await rows(store)} == {("counted", 3), ("other", 2)}
    await keep(store, stated(1, "Lena likes tea."))
    assert await refresh_vectors(store, LENA, first, at=LATER) == 0
    assert {model for model, _, _ in await rows(store)} == {"counted", "other"}
    assert len(await rows(store)) == 4


async def test_meaning_finds_what_words_do_not(store: Store) -> None:
    many = [stated(number, f"Lena keeps lamp {number}.") for number in range(10, 40)]
    await keep(store, *many, stated(1, "Lena owns a tandem."))
    embedder = Counted("counted", "tandem", "velo", "lamp")
    found = await search(store, LENA, "velotandem", at=LATER, embedder=embedder)
    assert (told(found), found.without_vector) == ([], 32)
    await refresh_vectors(store, LENA, embedder, at=LATER)
    found = await search(store, LENA, "velotandem", at=LATER, embedder=embedder)
    assert (told(found), found.without_vector) == (["Lena owns a tandem."], 0)


async def test_recall_goes_by_words_where_no_vector_can_be_made(store: Store) -> None:
    await keep(store, stated(1, "Lena likes tea."))
    embedder = Counted()
    await refresh_vectors(store, LENA, embedder, at=LATER)
    embedder.is_down = True
    assert told(await search(store, LENA, "tea", at=LATER, embedder=embedder)) == ["Lena likes tea."]


async def test_a_store_file_that_was_replaced_is_seen(store: Store) -> None:
    if store.path is None:
        pytest.skip("only a file can be replaced")
    await keep(store, stated(1, "Lena likes tea."))
    assert (await search(store, LENA, "tea", at=LATER)).stored == 1
    for name in ("", "-wal", "-shm"):
        store.path.with_name(store.path.name + name).unlink(missing_ok=True)
    async with Store(f"sqlite:///{store.path}") as other:
        await other.migrate()
        with other.connecting(writing=True) as connection:
            connection.execute(text("UPDATE scopes SET revision = 0"))
    assert (await search(store, LENA, "tea", at=LATER)).stored == 0
