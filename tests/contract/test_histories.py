"""The same random histories against a real store: its kept facts are always those of what counts, derived anew."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Usage, Window
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Assertion, Verdict, digest
from afterword.facts.knowledge import Knowledge
from afterword.facts.validity.timeline import fact_histories
from afterword.pipeline.intake import Saved
from afterword.pipeline.resolution import comparison_partners, required_pairs
from afterword.pipeline.reversible_runs import redo_run, undo_run
from afterword.pipeline.session import process_session
from afterword.store import ledger, lookup, runs, scope_rows
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading
from histories import (
    LENA,
    Book,
    CoherentJudge,
    Dump,
    History,
    Pair,
    Run,
    day,
    dumped,
    histories,
    holds_for,
)

share = pytest.mark.parametrize(
    "share", [pytest.param(1, id="ci"), pytest.param(50, id="soak", marks=pytest.mark.soak)]
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with its tables and nothing in them, of which every history gets a copy."""
    path = tmp_path_factory.mktemp("empty") / "afterword.db"

    async def make() -> None:
        async with Store(f"sqlite:///{path}") as store:
            await store.migrate()

    asyncio.run(make())
    return path


def in_a_store(empty: Path, *works: Callable[[Store], Any]) -> None:
    """Do each work in a store object of its own, all on one new store."""

    async def opened(path: Path) -> None:
        for work in works:
            async with Store(f"sqlite:///{path}") as store:
                await work(store)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(opened(Path(shutil.copy(empty, folder))))


async def kept(store: Store) -> Dump:
    """Return the facts as the store keeps them, after checking that they are those of what counts."""
    with store.reading() as transaction:
        laid_out = lookup.read_histories(transaction, LENA)
        held, live = lookup.read_knowledge(transaction, LENA), lookup.read_knowledge(transaction, LENA, afresh=True)
    assert set(held.assertions) == set(live.assertions)
    assert set(held.verdicts) == set(live.verdicts)
    assert dumped(laid_out) == dumped(fact_histories(live.assertions, live.verdicts))
    check_that_made_on_demand_is_whole(live)
    return dumped(laid_out)


def check_that_made_on_demand_is_whole(stored: Knowledge) -> None:
    """Check that what a store gives on demand leads to the same as knowledge that was built from all statements."""
    everything = stored.assertions
    whole = Knowledge.of(0, everything, stored.verdicts)
    assert required_pairs(everything, stored) == required_pairs(everything, whole)
    assert comparison_partners(everything, stored) == comparison_partners(everything, whole)
    assert stored.last_said_at == whole.last_said_at
    assert (stored.names.spellings, stored.names.ambiguous_names) == (
        whole.names.spellings,
        whole.names.ambiguous_names,
    )
    assert [stored.replacement_times.get(said.id) for said in everything] == [
        whole.replacement_times.get(said.id) for said in everything
    ]
    for said in everything:
        near, expected = (
            {o.said.id for o in known.index.statements_near(known.index.by_id[said.id])} for known in (stored, whole)
        )
        assert near == expected
    half = everything[::2]
    rest, whole_rest = (known.revised(1, removed=half) for known in (stored, whole))
    again = rest.revised(2, added=half)
    assert rest.names.spellings == whole_rest.names.spellings
    assert required_pairs(rest.assertions, rest) == required_pairs(rest.assertions, whole_rest)
    assert required_pairs(everything, again) == required_pairs(everything, whole)


async def written(store: Store, run: Run) -> int:
    """Propose and apply a run of the book; return its number in the store."""
    reading = WindowReading(digest([one.id for one in run.assertions]), 1, run.length, run.assertions)
    source = ledger.session_run_source(run.source)
    with store.writing() as transaction:
        revision = scope_rows.revision_of(transaction, LENA)
        proposal = Proposal(LENA, source, "session", "drawn", "drawn", day(30), revision, (reading,), run.verdicts)
        run_id = ledger.propose_run(transaction, proposal)
        ledger.apply_run(transaction, LENA, run_id, day(30))
    return run_id


async def kept_as_in_the_book(store: Store, history: History) -> None:
    """Let the history happen in a book and in the store, and compare the two after each move."""
    book, steps = Book(history.judge, meets_all=False), list[tuple[int, tuple[bool, ...], Dump]]()
    history.happen(
        book,
        undos=True,
        redos=True,
        seen=lambda: steps.append((len(book.runs), tuple(run.counts for run in book.runs), book.dump())),
    )
    numbers: list[int] = []
    undone: set[int] = set()
    for count, counting, expected in steps:
        numbers += [await written(store, run) for run in book.runs[len(numbers) : count]]
        for place, counts in enumerate(counting):
            if not counts and place not in undone:
                undone.add(place)
                with store.writing() as transaction:
                    ledger.revert_run(transaction, LENA, numbers[place], day(31))
            elif counts and place in undone:
                undone.remove(place)
                with store.writing() as transaction:
                    ledger.reinstate_run(transaction, LENA, numbers[place], day(31))
        assert await kept(store) == expected


@share
def test_the_store_keeps_what_the_book_says(empty: Path, share: int) -> None:
    """Read, grown, swapped, undone and redone: after every move the kept facts are those of the pure core."""

    def check(history: History) -> None:
        shorter = replace(history, moves=history.moves[:14])
        in_a_store(empty, lambda store: kept_as_in_the_book(store, shorter))

    holds_for(15 * share, histories(), check)


class Weighed:
    """The judge of a history, asked for what pairs say, whatever their ids."""

    version = "drawn-1"
    pairs_a_call: int | None = None

    def __init__(self, judge: CoherentJudge) -> None:
        self._judge = judge

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        found = (self._judge.verdict(*pair) for pair in pairs)
        return [one for one in found if one], Usage()


def words(one: Assertion) -> str:
    """Return a turn that says it, unlike every other turn."""
    return f"{one.statement} ({one.id})"


def candidate(turn: int, one: Assertion) -> Candidate:
    return Candidate(
        act=one.act,
        kind=one.kind,
        subject=one.subject,
        attribute=one.attribute,
        value=one.value or "it",
        statement=one.statement,
        valid_from=one.valid_from.date() if one.valid_from else None,
        valid_to=one.valid_to.date() if one.valid_to else None,
        cue=one.cue,
        limited_to=one.limited_to,
        evidence=[Citation(turn=turn, quote=words(one))],
    )


async def processed(store: Store, history: History, lengths: Sequence[tuple[str, int]]) -> Dump:
    """Process the first statements of these sessions one after the other; return what is kept."""
    said = {words(one): one for told in history.sessions for one in told.whole}
    told = {one.id: one for one in history.sessions}

    def find(window: Window) -> list[Candidate]:
        return [candidate(turn.number, said[turn.text]) for turn in window.turns if turn.text in said]

    judge = Weighed(CoherentJudge(history.judge.seed))
    for name, length in lengths:
        whole = told[name].whole
        messages = [{"content": words(one), "source": "user", "type": "UserMessage"} for one in whole[:length]]
        state = {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": messages}}
        at = whole[0].said_at
        one = Saved(LENA, name, state=state, started_at=at, ended_at=at)
        await process_session(store, one, extractor=OracleExtractor(find), judge=judge, clock=lambda: day(30))
    return await kept(store)


@share
def test_a_session_processed_as_it_grows_is_as_if_processed_once(empty: Path, share: int) -> None:
    """The whole path, from the saved state on, with the pairs that the pipeline itself requires."""

    def check(history: History) -> None:
        wholes = [(told.id, len(told.whole)) for told in history.shuffled()]
        growing = [(told.id, 1) for told in history.sessions[::2]]
        found: list[Dump] = []

        async def keep(store: Store, lengths: Sequence[tuple[str, int]]) -> None:
            found.append(await processed(store, history, lengths))

        in_a_store(empty, lambda store: keep(store, [*growing, *wholes]))
        in_a_store(empty, lambda store: keep(store, wholes))
        assert found[0] == found[1]

    holds_for(5 * share, histories(CoherentJudge, least=4, is_trusted=True), check)


@share
def test_a_session_gives_the_same_in_a_process_that_knows_nothing_yet(empty: Path, share: int) -> None:
    """Each session in a store object of its own, which reads what is known on demand, or all in one."""

    def check(history: History) -> None:
        wholes = [(told.id, len(told.whole)) for told in history.shuffled()]
        dumps: list[Dump] = []

        async def keep(store: Store, lengths: Sequence[tuple[str, int]]) -> None:
            dumps.append(await processed(store, history, lengths))

        in_a_store(empty, partial(keep, lengths=wholes))
        in_a_store(empty, *(partial(keep, lengths=[session]) for session in wholes))
        assert dumps[0] == dumps[-1]

    holds_for(5 * share, histories(CoherentJudge, least=4, is_trusted=True), check)


@share
def test_an_undone_session_is_as_if_it_had_never_been_processed(empty: Path, share: int) -> None:
    """What was compared only with what is gone is compared with the next restatement, and with nothing else again."""

    def check(history: History) -> None:
        wholes = [(told.id, len(told.whole)) for told in history.shuffled()]
        undone = wholes[history.moves[0] % len(wholes)]
        found: list[Dump] = []

        async def undo(store: Store) -> None:
            await processed(store, history, wholes)
            with store.reading() as transaction:
                made = runs.read_runs(transaction, LENA)
            run_id = next(one.id for one in made if one.source == ledger.session_run_source(undone[0]))
            await undo_run(store, run_id, judge=Weighed(CoherentJudge(history.judge.seed)), clock=lambda: day(31))
            found.append(await kept(store))

        async def never(store: Store) -> None:
            found.append(await processed(store, history, [one for one in wholes if one != undone]))

        in_a_store(empty, undo)
        in_a_store(empty, never)
        assert found[0] == found[1]

    holds_for(2 * share, histories(CoherentJudge, least=6, is_trusted=True), check)


@share
def test_a_redone_session_is_as_if_it_had_never_been_undone(empty: Path, share: int) -> None:
    """Undone, others processed meanwhile, and redone: what came meanwhile is compared with it."""

    def check(history: History) -> None:
        wholes = [(told.id, len(told.whole)) for told in history.shuffled()]
        half = len(wholes) // 2
        undone = wholes[history.moves[0] % half]
        judge = Weighed(CoherentJudge(history.judge.seed))
        dumps: list[Dump] = []

        async def redo(store: Store) -> None:
            await processed(store, history, wholes[:half])
            run_id = await run_of(store, undone[0])
            before = await kept(store)
            await undo_run(store, run_id, judge=judge, clock=lambda: day(31))
            redone = await redo_run(store, run_id, judge=judge, clock=lambda: day(31))
            assert await kept(store) == before
            assert redone.run.status == "applied"
            await undo_run(store, run_id, judge=judge, clock=lambda: day(31))
            await processed(store, history, wholes[half:])
            await redo_run(store, run_id, judge=judge, clock=lambda: day(32))
            dumps.append(await kept(store))

        async def never(store: Store) -> None:
            dumps.append(await processed(store, history, wholes))

        in_a_store(empty, redo)
        in_a_store(empty, never)
        assert dumps[0] == dumps[1]

    holds_for(2 * share, histories(CoherentJudge, least=6, is_trusted=True), check)


async def run_of(store: Store, session_id: str) -> int:
    """Return the run that has read a session."""
    made = await store.read(lambda transaction: runs.read_runs(transaction, LENA))
    return next(run.id for run in made if run.source == ledger.session_run_source(session_id))
