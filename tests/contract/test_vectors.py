"""Vectors over every database: none of words that are gone, none of two models side by side, nothing paid twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, select

from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.assertions import OWNER, Assertion, Authority, Evidence, EvidenceKind, Kind, SpeechAct
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import JobClock, Rhythm
from afterword.pipeline.background.periodic_jobs import EMBEDDING, PeriodicJobs
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.errors import BudgetReached
from afterword.pipeline.vector_refresh import VectorRefresher
from afterword.recall.vectors import EmbeddingUnavailable, Vector
from afterword.store import ledger, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting.erasure import Erasure, erase_in_scope
from afterword.store.limits import RetryPolicy
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.reading import scope_vectors
from afterword.store.reading.recall import recall, search
from afterword.store.reading.scope_vectors import COMPLETE, refresh_vectors
from afterword.store.tables import VectorRow

LENA, TOM = Scope.user("lena"), Scope.user("tom")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=30)
RHYTHMS = dict.fromkeys(("pending", "retries", "consolidation", EMBEDDING), Rhythm(every_s=60.0))


class Lengths:
    """An embedder of our own: the length of a text. `between` is done while it makes vectors.

    `bad` holds other vectors, by a part of the text that gets them.
    """

    def __init__(self, model: str = "lengths", dimension: int = 2) -> None:
        self.model, self.dimension = model, dimension
        self.asked: list[str] = []
        self.fails_after = 1_000_000
        self.between: Callable[[], Awaitable[object]] | None = None
        self.bad: dict[str, Any] = {}

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if len(self.asked) + len(texts) > self.fails_after:
            raise EmbeddingUnavailable("the endpoint is down")
        self.asked += texts
        between, self.between = self.between, None
        if between is not None:
            await between()
        return [self.vector(one) for one in texts]

    def vector(self, text: str) -> Vector:
        bad = [vector for part, vector in self.bad.items() if part in text]
        return bad[0] if bad else [float(len(text)), *[1.0] * (self.dimension - 1)]


class LocalLengths(Lengths):
    """An embedder that sends no text anywhere."""

    is_local = True


def stated(number: int, statement: str, scope: Scope = LENA) -> Assertion:
    return Assertion(
        id=f"{scope.id}-{number}",
        scope=scope,
        session_id=None,
        act=SpeechAct.STATE,
        kind=Kind.ENTITY,
        subject=OWNER,
        attribute="note",
        value=statement,
        statement=statement,
        speaker="user",
        authority=Authority.STATED,
        said_at=NOON + timedelta(minutes=number),
        evidence=(Evidence(EvidenceKind.PERSON, statement),),
    )


async def keep(store: Store, *said: Assertion, scope: Scope = LENA) -> int:
    with store.writing() as transaction:
        revision = scope_rows.revision_of(transaction, scope)
        reading = WindowReading(f"window {revision}", 1, 9, said)
        run_id = ledger.propose_run(
            transaction, Proposal(scope, f"s{revision}", "x", "t", "t", NOON, revision, (reading,))
        )
        ledger.apply_run(transaction, scope, run_id, NOON)
        return run_id


async def things(store: Store, count: int, scope: Scope = LENA) -> None:
    await keep(
        store, *(stated(number, f"Lena owns thing number {number}.", scope) for number in range(count)), scope=scope
    )


async def kept(store: Store, key: str | None = None) -> dict[tuple[str, int], int]:
    """Return how many vectors are kept of each model, or its notes that it has all."""
    with store.reading() as transaction:
        rows = transaction.exec(
            select(VectorRow.model, VectorRow.dimension, VectorRow.key).order_by(col(VectorRow.key))
        )
        found = [(model, size) for model, size, name in rows if (name == COMPLETE) == (key == COMPLETE)]
    return {name: found.count(name) for name in sorted(set(found))}


def refresher(store: Store, embedder: Lengths, at: datetime = LATER, **more: Any) -> VectorRefresher:
    clock = JobClock(at, speed=1e-9)
    return VectorRefresher(store, embedder, CostTracker, batch=2, clock=clock, **more)


async def test_what_was_paid_for_is_kept_when_the_endpoint_fails_in_the_middle(store: Store) -> None:
    await things(store, 7)
    embedder = Lengths()
    embedder.fails_after = 5
    done = await refresher(store, embedder).refresh([LENA])
    assert (done.made, done.left, type(done.error)) == (4, 1, EmbeddingUnavailable)
    embedder.fails_after = 1_000
    done = await refresher(store, embedder).refresh([LENA])
    assert (done.made, done.left, done.error) == (3, 0, None)
    assert len(embedder.asked) == len(set(embedder.asked)) == 7


BAD = [[None, 1.0], [float("inf"), 1.0], [1e300, 1.0], [0.0, 0.0], [1.0]]


@pytest.mark.parametrize("bad", BAD, ids=str)
async def test_a_vector_that_is_unusable_is_refused_and_the_others_are_kept(store: Store, bad: list[Any]) -> None:
    await things(store, 7)
    embedder = Lengths()
    embedder.bad["owns thing number 3"] = bad
    done = await refresher(store, embedder).refresh()
    assert (done.made, done.left) == (6, 1)
    assert "lengths: 1 of 7 vectors are not 2 finite numbers" in str(done.error)
    found = await search(store, LENA, "number 3", at=LATER, embedder=embedder)
    assert (found.facts[0].statement, found.without_vector) == ("Lena owns thing number 3.", 1)
    embedder.bad.clear()
    assert (await refresher(store, embedder).refresh()).made == 1
    assert len(embedder.asked) == 7 + 1 + 1, "only what is missing is asked again"


@pytest.mark.parametrize("bad", BAD, ids=str)
async def test_a_question_whose_vector_is_unusable_is_answered_by_words(
    store: Store, bad: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    await things(store, 7)
    embedder = Lengths()
    await refresher(store, embedder).refresh()
    embedder.bad["number 3"] = bad
    found = await search(store, LENA, "number 3", at=LATER, embedder=embedder)
    assert found.facts[0].statement == "Lena owns thing number 3."
    assert "recall goes by words alone: the vector of the question is not 2 finite numbers" in caplog.text


@pytest.mark.parametrize("bad", [b"\x00\x7e\x00\x3c", b"\x00\x7c\x00\x3c", bytes(4)], ids=["nan", "infinite", "zeros"])
async def test_an_unusable_vector_that_is_stored_does_no_harm_and_is_made_anew(store: Store, bad: bytes) -> None:
    await things(store, 7)
    embedder = Lengths()
    await refresher(store, embedder).refresh()
    with store.writing() as transaction:
        row = transaction.exec(select(VectorRow).where(col(VectorRow.key) != COMPLETE)).first()
        assert row is not None
        row.content = bad
        transaction.add(row)
    found = await search(store, LENA, "number 3", at=LATER, embedder=embedder)
    assert (found.facts[0].statement, found.without_vector) == ("Lena owns thing number 3.", 1)
    assert await refresh_vectors(store, LENA, embedder, at=LATER) == 1
    assert (await search(store, LENA, "number 3", at=LATER, embedder=embedder)).without_vector == 0
    assert await kept(store) == {("lengths", 2): 7}


async def test_another_model_is_complete_before_the_former_one_goes(store: Store) -> None:
    await things(store, 5)
    await refresher(store, Lengths()).refresh()
    other = Lengths("other", 3)
    other.fails_after = 3
    assert (await refresher(store, other).refresh()).left == 1
    assert await kept(store) == {("lengths", 2): 5, ("other", 3): 2}
    assert await kept(store, COMPLETE) == {("lengths", 2): 1}
    other.fails_after = 100
    await refresher(store, other).refresh()
    assert await kept(store) == {("other", 3): 5}
    assert await kept(store, COMPLETE) == {("other", 3): 1}


async def test_another_dimension_is_another_model(store: Store) -> None:
    await things(store, 3)
    await refresher(store, Lengths()).refresh()
    await refresher(store, Lengths(dimension=4)).refresh()
    assert await kept(store) == {("lengths", 4): 3}
    found = await search(store, LENA, "thing", at=LATER, embedder=Lengths())
    assert found.without_vector == 3, "vectors of another size are none"


async def test_an_application_with_another_embedder_takes_nothing_away(store: Store) -> None:
    await things(store, 3)
    await refresher(store, Lengths()).refresh()
    await refresh_vectors(store, LENA, Lengths("other"), at=LATER)
    assert await kept(store) == {("lengths", 2): 3, ("other", 2): 3}
    assert await kept(store, COMPLETE) == {("lengths", 2): 1}


async def test_only_what_has_changed_is_looked_at_again(store: Store) -> None:
    await things(store, 3)
    await things(store, 2, TOM)
    embedder = Lengths()

    async def lacking(at: datetime = LATER) -> list[Scope]:
        with store.reading() as transaction:
            return scope_vectors.scopes_lacking_vectors(transaction, embedder, at)

    assert await lacking() == [LENA, TOM]
    assert (await refresher(store, embedder).refresh([TOM])).made == 2
    assert await lacking() == [LENA]
    assert (await refresher(store, embedder).refresh()).made == 3
    assert await lacking() == []
    run_id = await keep(store, stated(40, "Tom owns a kite.", TOM), scope=TOM)
    assert await lacking() == [TOM]
    await refresher(store, embedder).refresh()
    assert embedder.asked[5:] == [text for text in embedder.asked[5:] if "kite" in text]
    await store.write(lambda transaction: ledger.revert_run(transaction, TOM, run_id, LATER))
    await refresher(store, embedder).refresh()
    assert await kept(store) == {("lengths", 2): 5}, "what was undone has no vector"
    assert len(embedder.asked) == 6


async def test_a_memory_is_looked_at_again_when_something_begins_or_ends(store: Store) -> None:
    ends = NOON + timedelta(days=40)
    await keep(store, stated(1, "Lena owns a kite."), replace(stated(2, "Lena is in Oslo."), valid_to=ends))
    embedder = Lengths()
    await refresher(store, embedder).refresh()
    with store.reading() as transaction:
        assert scope_vectors.scopes_lacking_vectors(transaction, embedder, ends - timedelta(days=1)) == []
        assert scope_vectors.scopes_lacking_vectors(transaction, embedder, ends + timedelta(days=1)) == [LENA]
    await refresher(store, embedder, ends + timedelta(days=1)).refresh()
    assert await kept(store) == {("lengths", 2): 1}


async def test_no_vector_is_kept_of_words_that_went_while_it_was_made(store: Store) -> None:
    await keep(store, stated(1, "Lena likes tea."), stated(2, "Lena has a secret lover."))
    embedder = Lengths()

    async def regret() -> None:
        await erase_in_scope(store, LENA, lambda erasure: erasure.forget_statements(["lena-2"]), at=LATER)

    embedder.between = regret
    done = await refresher(store, embedder).refresh()
    assert done.error is None
    assert await kept(store) == {("lengths", 2): 1}
    assert len(embedder.asked) == 2, "what was paid for the rest is used"


async def test_what_is_forgotten_takes_its_vectors_along(store: Store) -> None:
    await things(store, 3)
    await refresher(store, Lengths()).refresh()
    await erase_in_scope(store, LENA, Erasure.forget_everything, at=LATER)
    assert await kept(store) == {}
    assert await kept(store, COMPLETE) == {}
    assert (await refresher(store, Lengths()).refresh()).error is None


async def test_two_that_refresh_at_once_keep_one_of_each(store: Store) -> None:
    await things(store, 9)
    done = await asyncio.gather(*(refresher(store, Lengths()).refresh() for _ in range(2)))
    assert [one.error for one in done] == [None, None]
    assert await kept(store) == {("lengths", 2): 9}


async def test_secrets_in_a_question_are_masked_before_it_is_sent(store: Store) -> None:
    await things(store, 40)
    embedder = Lengths()
    await refresher(store, embedder).refresh()
    embedder.asked.clear()
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    await recall(store, LENA, f"is {secret} my key?", at=LATER, budget_tokens=200, embedder=embedder)
    assert embedder.asked == ["is [redacted: api key] my key?"]


async def test_a_question_off_the_record_is_not_sent(store: Store) -> None:
    await things(store, 40)
    embedder = Lengths()
    await refresher(store, embedder).refresh()
    embedder.asked.clear()
    query = "off the record: which thing number 7?"
    found = await recall(store, LENA, query, at=LATER, budget_tokens=200, embedder=embedder)
    assert embedder.asked == []
    assert found.facts


async def test_a_question_that_stays_in_the_process_is_not_searched_for_secrets_and_wishes(store: Store) -> None:
    await things(store, 40)
    embedder = LocalLengths()
    await refresher(store, embedder).refresh()
    embedder.asked.clear()
    query = "off the record: which thing number 7?"
    await search(store, LENA, query, at=LATER, embedder=embedder)
    assert embedder.asked == [query]


async def test_vectors_that_another_process_makes_are_seen_after_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afterword.store.reading.scope_vectors.READ_AGAIN_S", 0.0)
    await things(store, 3)
    embedder = Lengths()
    assert (await search(store, LENA, "thing", at=LATER, embedder=embedder)).without_vector == 3
    if store.is_in_memory:
        return
    async with Store(store._url.render_as_string(hide_password=False)) as other:
        await refresh_vectors(other, LENA, embedder, at=LATER)
    assert (await search(store, LENA, "thing", at=LATER, embedder=embedder)).without_vector == 0


async def test_after_a_write_all_that_a_search_needs_is_read_in_one_transaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await things(store, 3)
    embedder = Lengths()
    await refresher(store, embedder).refresh()
    await search(store, LENA, "thing", at=LATER, embedder=embedder)
    await keep(store, stated(9, "Lena bought a kettle."))
    begun, reading = list[Store](), Store.reading

    def counted(self: Store) -> Any:
        begun.append(self)
        return reading(self)

    monkeypatch.setattr(Store, "reading", counted)
    found = await search(store, LENA, "kettle", at=LATER, embedder=embedder)
    assert (found.facts[0].statement, found.without_vector) == ("Lena bought a kettle.", 1)
    assert begun == [store]


async def test_how_many_texts_lack_a_vector_is_told_by_model(store: Store) -> None:
    await things(store, 5)
    assert (await scope_vectors.vector_coverage(store, LENA, LATER)).made == {}
    embedder = Lengths()
    embedder.fails_after = 2
    await refresher(store, embedder).refresh()
    found = await scope_vectors.vector_coverage(store, LENA, LATER, ("other", 8))
    assert (found.texts, dict(found.made)) == (5, {("lengths", 2): 2, ("other", 8): 0})


async def test_a_budget_that_is_reached_is_told_and_nothing_more_is_asked(store: Store) -> None:
    await things(store, 3)

    class Refused(Lengths):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            raise BudgetReached("the day's budget would be exceeded")

    done = await refresher(store, Refused()).refresh()
    assert (done.made, done.left, type(done.error)) == (0, 1, BudgetReached)
    found = await search(store, LENA, "thing", at=LATER, embedder=Refused())
    assert len(found.facts) == 3, "recall goes on by words"


async def test_the_job_makes_what_is_missing_anywhere_and_fails_where_it_cannot(store: Store) -> None:
    await things(store, 3)
    await things(store, 2, TOM)
    embedder = Lengths()
    embedder.fails_after = 2
    nobody: Any = None  # this job asks neither an extractor nor a judge
    work = PeriodicJobs(store, nobody, nobody, CostTracker, refresher=refresher(store, embedder))
    (job,) = (one for one in work.jobs(RHYTHMS) if one.name == EMBEDDING)
    with pytest.raises(EmbeddingUnavailable):
        await job.work()
    embedder.fails_after = 100
    await job.work()
    assert await kept(store) == {("lengths", 2): 5}


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_worker_makes_vectors_beside_its_sessions_and_never_at_their_cost(store: Store, is_down: bool) -> None:
    fleet = pytest.importorskip("afterword.pipeline.background.workers", exc_type=ImportError)
    said = {"content": "I live in Graz.", "source": "user", "type": "TextMessage", "created_at": NOON.isoformat()}
    with store.writing() as transaction:
        sessions.save_state(transaction, LENA, "one", component="x", state={"messages": [said]}, at=NOON)
    with store.reading() as transaction:
        ((key, _),) = sessions.pending_session_and_scope_keys(transaction)
    embedder = Lengths()
    embedder.fails_after = 0 if is_down else 100
    made = refresher(store, embedder)
    rules = {"extractor": RulesExtractor(), "judge": RulesJudge()}
    await fleet.Worker(store, **rules, new_tracker=CostTracker, retries=RetryPolicy(), refresher=made).process(key)
    with store.reading() as transaction:
        kept_session = sessions.find_session(transaction, LENA, "one")
    assert kept_session is not None
    assert kept_session.progress is sessions.Progress.DONE
    assert bool(await kept(store)) is not is_down


async def test_who_stops_leaves_the_rest_for_later(store: Store) -> None:
    await things(store, 6)
    embedder = Lengths()
    done = await refresher(store, embedder, stop=lambda: "SIGTERM" if embedder.asked else None).refresh()
    assert (done.made, done.left, done.error) == (2, 1, None)
