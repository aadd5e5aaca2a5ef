"""One session from its saved state to facts, on every database."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from afterword.extractors.agent_findings import FindingsExtraction
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.errors import EndpointUnavailable
from afterword.extractors.extractor import Extraction, Usage, Window
from afterword.extractors.testing import OracleExtractor
from afterword.facts import knowledge
from afterword.facts.assertions import Cue, Kind
from afterword.facts.fact import Status
from afterword.facts.scopes import Scope
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import ledger, lookup, sessions
from afterword.store.database.engine import Store

LENA = Scope.user("lena")
Dump = list[tuple[object, ...]]
Canonical = Callable[[Store, Scope], Awaitable[Dump]]


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def state(*said: str) -> dict[str, Any]:
    """The saved state of an AssistantAgent to whom these things were said."""
    messages: list[dict[str, Any]] = []
    for text in said:
        messages.append({"content": text, "source": "user", "type": "UserMessage"})
        messages.append({"content": "Noted.", "thought": None, "source": "assistant", "type": "AssistantMessage"})
    return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": messages}}


class Homes(OracleExtractor):
    """Finds every `I live in X.` of a window, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(self._find, version="homes-1")
        self.asked = 0

    def _find(self, window: Window) -> list[Candidate]:
        self.asked += 1
        return [home(turn.number, turn.text) for turn in window.turns if turn.text.startswith("I live in ")]


def home(turn: int, text: str) -> Candidate:
    city = text.removeprefix("I live in ").rstrip(".")
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute="home",
        value=city,
        statement=f"The user lives in {city}.",
        evidence=[Citation(turn=turn, quote=text)],
        cue=Cue.CHANGE,
    )


def saved(session_id: str, number: int, *said: str) -> Saved:
    return Saved(LENA, session_id, state=state(*said), started_at=day(number), ended_at=day(number))


def without_ids(fact: tuple[object, ...]) -> tuple[object, ...]:
    """A dumped fact as it would be in any scope; ids name the scope that they belong to."""
    return (*fact[1:10], fact[13])


async def statuses(store: Store) -> dict[str, Status]:
    with store.reading() as transaction:
        return {fact.value: fact.status for fact in lookup.read_facts(transaction, LENA, at=day(28))}


async def test_processed_again_a_session_costs_nothing_and_changes_nothing(store: Store, canonical: Canonical) -> None:
    extractor = Homes()
    one = saved("a", 1, "I live in Graz.")
    first = await process_session(store, one, extractor=extractor)
    before = await canonical(store, LENA)
    again = await process_session(store, one, extractor=extractor)
    assert (first.run_id is None, again.run_id) == (False, None)
    assert extractor.asked == 1
    assert await canonical(store, LENA) == before


async def test_a_session_read_at_turn_10_and_at_20_is_as_if_read_once_at_20(store: Store, canonical: Canonical) -> None:
    said = [f"Hello number {number}." for number in range(1, 10)]
    said[2], said[7] = "I live in Graz.", "I live in Linz."
    extractor = Homes()
    await process_session(store, saved("a", 1, *said[:5]), extractor=extractor)
    await process_session(store, saved("a", 1, *said), extractor=extractor)
    grown = await canonical(store, LENA)
    other = Scope.user("other")
    whole = Saved(other, "a", state=state(*said), started_at=day(1), ended_at=day(1))
    await process_session(store, whole, extractor=extractor)
    at_once = await canonical(store, other)
    assert {without_ids(fact) for fact in grown} == {without_ids(fact) for fact in at_once}
    assert len(grown) == 2


class HomesAndFindings(Homes):
    """Homes, from an extractor that could also say what agents found, as a model can."""

    findings_version = "findings"

    async def extract_findings(self, window: Window, agents: Sequence[str], *, advice: bool) -> FindingsExtraction:
        raise AssertionError("the scope keeps no findings")


@pytest.mark.parametrize("extractor", [Homes(), HomesAndFindings()])
async def test_a_session_takes_three_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch, extractor: Homes
) -> None:
    """One reads the session, one reads what its statements are compared with, and one writes the run."""
    await process_session(store, saved("a", 1, "I live in Graz."), extractor=Homes())
    transactions: list[str] = []

    def counted(name: str) -> None:
        transact = getattr(store, name)

        async def count(*args: Any, **kwargs: Any) -> Any:
            transactions.append(name)
            return await transact(*args, **kwargs)

        monkeypatch.setattr(store, name, count)

    counted("read")
    counted("write")
    await process_session(store, saved("b", 2, "I live in Linz."), extractor=extractor)
    assert transactions == ["read", "read", "write"]
    assert await statuses(store) == {"Graz": Status.SUPERSEDED, "Linz": Status.CURRENT}


async def test_what_a_session_was_judged_by_is_used_again_when_it_is_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await process_session(store, saved("a", 1, "I live in Graz."), extractor=Homes())
    made: list[int] = []

    class Counted(JudgedPairs):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(len(self.by_id))

    monkeypatch.setattr(knowledge, "JudgedPairs", Counted)
    await process_session(store, saved("b", 2, "I live in Linz."), extractor=Homes())
    assert made == [2]  # what is known after it; what was known before is kept from the session before
    assert await statuses(store) == {"Graz": Status.SUPERSEDED, "Linz": Status.CURRENT}


async def test_a_grown_session_extracts_only_what_is_new(store: Store) -> None:
    long_talk = [f"This is remark {number}, and it is a long one: {'word ' * 400}" for number in range(30)]
    extractor = Homes()
    await process_session(store, saved("a", 1, *long_talk), extractor=extractor)
    before = extractor.asked
    assert before >= 3
    await process_session(store, saved("a", 1, *long_talk, "I live in Graz."), extractor=extractor)
    assert extractor.asked == before + 1
    assert await statuses(store) == {"Graz": Status.CURRENT}


async def test_an_older_copy_of_the_file_takes_nothing_away(store: Store, canonical: Canonical) -> None:
    extractor = Homes()
    await process_session(store, saved("a", 1, "Hello.", "I live in Graz."), extractor=extractor)
    before = await canonical(store, LENA)
    older = await process_session(store, saved("a", 1, "Hello."), extractor=extractor)
    assert older.run_id is None
    assert await canonical(store, LENA) == before


async def test_what_a_buffer_has_dropped_is_kept_from_the_former_reading(store: Store) -> None:
    extractor = Homes()
    await process_session(store, saved("a", 1, "I live in Graz.", "Second."), extractor=extractor)
    await process_session(store, saved("a", 1, "Second.", "Third."), extractor=extractor)
    with store.reading() as transaction:
        turns = sessions.read_turns(transaction, LENA, "a")
    assert [turn.text for turn in turns if turn.speaker == "user"] == ["I live in Graz.", "Second.", "Third."]
    assert await statuses(store) == {"Graz": Status.CURRENT}


async def test_the_order_of_arrival_changes_nothing(store: Store, canonical: Canonical) -> None:
    """A backfill delivers old sessions after new ones; today's facts must not care."""
    moves = [("a", 1, "I live in Graz."), ("b", 5, "I live in Linz."), ("c", 9, "I live in Graz.")]
    dumps = []
    for number, order in enumerate(itertools.permutations(moves)):
        scope = Scope.user(f"user {number}")
        for session_id, at, text in order:
            one = Saved(scope, session_id, state=state(text), started_at=day(at), ended_at=day(at))
            await process_session(store, one, extractor=Homes())
        dumps.append({without_ids(fact) for fact in await canonical(store, scope)})
    assert all(dump == dumps[0] for dump in dumps)
    assert {(fact[3], fact[5]) for fact in dumps[0]} == {("Graz", Status.CURRENT), ("Linz", Status.SUPERSEDED)}


async def test_a_guessed_time_retires_nothing(store: Store) -> None:
    extractor = Homes()
    await process_session(store, saved("a", 1, "I live in Graz."), extractor=extractor)
    guessed = Saved(LENA, "b", state=state("I live in Linz."), file_time=day(9))
    await process_session(store, guessed, extractor=extractor)
    assert await statuses(store) == {"Graz": Status.CONTESTED, "Linz": Status.CONTESTED}


async def test_a_manifest_found_later_dates_the_session_after_all(store: Store) -> None:
    extractor = Homes()
    await process_session(store, saved("a", 1, "I live in Graz."), extractor=extractor)
    guessed = Saved(LENA, "b", state=state("I live in Linz."), file_time=day(9))
    await process_session(store, guessed, extractor=extractor)
    await process_session(store, saved("b", 4, "I live in Linz."), extractor=extractor)
    assert await statuses(store) == {"Graz": Status.SUPERSEDED, "Linz": Status.CURRENT}


async def test_a_dry_run_stores_a_proposal_that_counts_only_when_applied(store: Store) -> None:
    outcome = await process_session(store, saved("a", 1, "I live in Graz."), extractor=Homes(), apply=False)
    assert outcome.run_id is not None
    assert [fact.value for fact in outcome.changes.learned] == ["Graz"]
    assert await statuses(store) == {}
    with store.writing() as transaction:
        ledger.apply_run(transaction, LENA, outcome.run_id, day(20))
    assert await statuses(store) == {"Graz": Status.CURRENT}


async def test_an_undone_session_stays_undone_until_it_grows(store: Store) -> None:
    extractor = Homes()
    first = await process_session(store, saved("a", 1, "I live in Graz."), extractor=extractor)
    assert first.run_id is not None
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, first.run_id, day(20))
    again = await process_session(store, saved("a", 1, "I live in Graz."), extractor=extractor)
    assert again.run_id is None
    assert await statuses(store) == {}


class Unreachable(OracleExtractor):
    """An extractor whose endpoint is down."""

    async def extract(self, window: Window) -> Extraction:
        raise EndpointUnavailable("model 'm' at http://127.0.0.1:9/v1 does not answer")


async def test_a_failure_is_kept_with_its_reason_and_mended_by_the_next_run(store: Store) -> None:
    good, bad = saved("a", 1, "I live in Graz."), saved("b", 2, "I live in Linz.")
    ended = await run_batch(store, [good, bad], extractor=Unreachable({}))
    assert all(isinstance(one, Failure) for one in ended)
    with store.reading() as transaction:
        kept = sessions.find_session(transaction, LENA, "b")
        assert kept is not None
        assert kept.failure is not None
        assert "does not answer" in kept.failure
        assert kept.progress == sessions.Progress.FAILED
    ended = await run_batch(store, [good, bad], extractor=Homes())
    assert all(isinstance(one, SessionOutcome) for one in ended)
    assert await statuses(store) == {"Graz": Status.SUPERSEDED, "Linz": Status.CURRENT}


async def test_a_broken_session_does_not_stop_the_others(store: Store) -> None:
    broken = Saved(LENA, "b", state={"what": "is this"}, started_at=day(2))
    ended = await run_batch(store, [broken, saved("a", 1, "I live in Graz.")], extractor=Homes())
    assert [type(one) for one in ended] == [Failure, SessionOutcome]
    assert await statuses(store) == {"Graz": Status.CURRENT}


@pytest.mark.parametrize("number", [1, 2])
async def test_two_processes_on_one_session_lose_and_double_nothing(store: Store, number: int) -> None:
    import asyncio

    some = [saved(f"s{each}", each, f"I live in City {each}.") for each in range(1, 5)]
    await asyncio.gather(*(process_session(store, one, extractor=Homes()) for one in some * number))
    found = await statuses(store)
    assert found == {f"City {each}": Status.SUPERSEDED for each in range(1, 4)} | {"City 4": Status.CURRENT}


async def test_costs_are_kept_with_the_run(store: Store) -> None:
    class Costly(Homes):
        async def extract(self, window: Window) -> Extraction:
            found = await super().extract(window)
            return Extraction(found.candidates, Usage(1, 100, 10))

    outcome = await process_session(store, saved("a", 1, "I live in Graz."), extractor=Costly())
    assert outcome.usage == Usage(1, 100, 10)


def team(*said: tuple[str, str]) -> dict[str, Any]:
    """The saved state of a team to which these sources said these things from outside."""
    thread = [{"type": "TextMessage", "source": source, "content": text, "metadata": {}} for source, text in said]
    agent = {"type": "ChatAgentContainerState", "agent_state": {"type": "BaseState"}, "message_buffer": []}
    manager = {"type": "RoundRobinManagerState", "message_thread": thread, "current_turn": 0, "next_speaker_index": 0}
    return {"type": "TeamState", "agent_states": {"helper": agent, "RoundRobinGroupChatManager": manager}}


async def test_a_machine_that_speaks_from_outside_is_never_the_owner(store: Store) -> None:
    """An export that is fed to a team is not the user's word, however often it is read."""
    for number in (1, 2, 3):
        more = [("crm_export", f"Export {each}.") for each in range(number)]
        state = team(("crm_export", "I live in Oslo."), *more)
        one = Saved(LENA, "a", state=state, started_at=day(1), ended_at=day(1))
        outcome = await process_session(store, one, extractor=Homes())
        assert (outcome.owners, outcome.transcript.assumed) == ((), ("crm_export",))
    reread = await process_session(store, Saved(LENA, "a", reread=True), extractor=Homes())
    assert (reread.owners, reread.transcript.assumed) == ((), ("crm_export",))
    with store.reading() as transaction:
        assert {fact.subject for fact in lookup.read_facts(transaction, LENA, at=day(9))} == {"crm_export"}
