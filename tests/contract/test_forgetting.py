"""Forgetting for good: what was forgotten is in no table and no file, and does not come back. On every database."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update
from sqlmodel import SQLModel, col

from afterword import record_session, resume
from afterword.errors import NotFound
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Window
from afterword.extractors.rules import RulesJudge
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Kind, Relation, SpeechAct, Verdict
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.proposals import apply_proposal
from afterword.pipeline.reversible_runs import undo_run
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import entries, lookup, reviews, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from afterword.store.forgetting import erasure as forgetting
from afterword.store.forgetting import forgotten_statements
from afterword.store.forgetting.erasure import Erasure, ErasureWork, Receipt
from afterword.store.forgetting.tables import TombstoneRow
from deciding_words import find
from kept import run, stated

LENA, TOM = Scope.user("lena"), Scope.user("tom")
NOW = datetime(2026, 4, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def state(*said: str) -> dict[str, Any]:
    """A saved state: what a person says, and an assistant that repeats it."""
    messages: list[dict[str, Any]] = []
    for words in said:
        messages.append({"content": words, "source": "user", "type": "UserMessage"})
        messages.append({"content": f"Noted, {words}!", "source": "bot", "type": "AssistantMessage"})
    return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}


async def process(
    store: Store, session_id: str, on: int, *said: str, scope: Scope = LENA, **more: Any
) -> SessionOutcome:
    saved = Saved(scope, session_id, state=state(*said), started_at=day(on), ended_at=day(on))
    return await process_session(store, saved, extractor=OracleExtractor(find), **more)


async def forget(store: Store, work: ErasureWork, scope: Scope = LENA, at: datetime = NOW) -> Receipt:
    receipt = await forgetting.erase_in_scope(store, scope, work, at=at)
    assert await store.compact()
    return receipt


async def held(store: Store, scope: Scope = LENA, at: datetime = datetime(2026, 5, 1, tzinfo=UTC)) -> dict[str, Fact]:
    with store.reading() as transaction:
        return {fact.value: fact for fact in lookup.read_facts(transaction, scope, at=at)}


def of(fact: Fact) -> ErasureWork:
    return lambda erasure: erasure.forget_statements(fact.assertion_ids)


async def everything(store: Store) -> str:
    """Every value of every table, states unpacked, and every byte of a SQLite store's files."""
    kept: list[str] = []
    with store.connecting(writing=False) as connection:
        for table in SQLModel.metadata.sorted_tables:
            for row in connection.execute(table.select()).all():
                for value in row:
                    kept.append(zlib.decompress(value).decode() if isinstance(value, bytes) else str(value))
    if store.path is not None:
        for file in store.path.parent.glob(f"{store.path.name}*"):
            kept.append(file.read_bytes().decode("latin-1"))
    return "\n".join(kept).casefold()


async def test_a_fact_is_gone_from_every_table_and_file_and_the_rest_stays(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    await process(store, "b", 2, "home: Gnarlsburg")
    receipt = await forget(store, of((await held(store))["Gnarlsburg"]))
    assert receipt.erased["assertions"] == 2
    assert set(await held(store)) == {"oolong"}
    assert "gnarlsburg" not in await everything(store)
    with store.reading() as transaction:
        turns = sessions.read_turns(transaction, LENA, "a")
    assert [turn.text for turn in turns] == [
        "[forgotten]",
        "Noted, [forgotten]!",
        "drink: oolong",
        "Noted, drink: oolong!",
    ]


async def test_processing_its_session_again_does_not_bring_a_fact_back(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    await forget(store, of((await held(store))["Gnarlsburg"]))
    for said in (("home: Gnarlsburg", "drink: oolong"), ("home: Gnarlsburg", "drink: oolong", "seat: window")):
        await process(store, "a", 1, *said)
        assert "Gnarlsburg" not in await held(store)
    assert set(await held(store)) == {"oolong", "window"}
    assert "gnarlsburg" not in await everything(store)


async def test_another_session_of_before_does_not_bring_it_back_and_a_later_one_says_it_anew(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg")
    await forget(store, of((await held(store))["Gnarlsburg"]), at=day(10))
    late = await process(store, "b", 5, "home:   Gnarlsburg ", "drink: oolong")
    assert late.rejected == {"forgotten": 1}
    assert set(await held(store)) == {"oolong"}
    await process(store, "c", 12, "home: Gnarlsburg")
    assert set(await held(store)) == {"oolong", "Gnarlsburg"}


async def test_a_session_is_forgotten_whole_and_what_is_said_in_it_later_is_new(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    await process(store, "b", 2, "seat: window")
    await reviews.confirm_fact(store, LENA, (await held(store))["Gnarlsburg"].id, at=day(3))
    await forget(store, lambda erasure: erasure.forget_session("a"))
    assert set(await held(store)) == {"window"}
    kept = await everything(store)
    assert "gnarlsburg" not in kept
    assert "oolong" not in kept
    assert (await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")).run_id is None
    assert set(await held(store)) == {"window"}
    with pytest.raises(NotFound):
        await forget(store, lambda erasure: erasure.forget_session("unknown"))


async def test_a_whole_memory_is_forgotten_and_no_other(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg")
    await process(store, "a", 1, "home: Linz", scope=TOM)
    await entries.add_entry(store, LENA, Entry("Allergic to quandongs."), at=day(2))
    await process(store, "p", 3, "drink: oolong", apply=False)
    await forget(store, Erasure.forget_everything)
    kept = await everything(store)
    assert not [word for word in ("gnarlsburg", "quandong", "oolong") if word in kept]
    assert set(await held(store, TOM)) == {"Linz"}
    await process(store, "z", 4, "home: Gnarlsburg")
    assert await held(store) == {}, "said before it was forgotten"
    with store.reading() as transaction:
        assert scope_rows.revision_of(transaction, LENA) > 0, "caches must see that it has changed"


async def test_the_number_of_a_forgotten_run_is_given_to_no_other_run(store: Store) -> None:
    """People and audit entries still know it: `undo` with this number would undo somebody else's run."""
    effect = await entries.add_entry(store, LENA, Entry("Allergic to quandongs."), at=day(2))
    await forget(store, Erasure.forget_everything)
    other = await entries.add_entry(store, TOM, Entry("Likes oolong."), at=day(3))
    assert other.run.id > effect.run.id


async def test_what_was_said_before_a_day_is_forgotten(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg")
    await process(store, "b", 20, "drink: oolong")
    await forget(store, lambda erasure: erasure.forget_before(day(10)))
    assert set(await held(store)) == {"oolong"}
    assert "gnarlsburg" not in await everything(store)
    await process(store, "a", 1, "home: Gnarlsburg")
    await process(store, "c", 11, "home: Gnarlsburg")
    assert (await held(store))["Gnarlsburg"].said_at == day(11)


@pytest.mark.parametrize("is_undone", [False, True])
@pytest.mark.parametrize("work", [lambda it: it.forget_before(day(2)), lambda it: it.forget_session("a")])
async def test_a_withdrawal_of_forgotten_words_is_forgotten_with_them(
    store: Store, work: ErasureWork, is_undone: bool
) -> None:
    """It repeats them. While it is in force it keeps its effect on what was said earlier and is read later."""
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    withdrawn = await reviews.withdraw_fact(store, LENA, (await held(store))["Gnarlsburg"].id, at=day(8))
    if is_undone:
        await undo_run(store, withdrawn.run.id, judge=RulesJudge(), clock=lambda: NOW)
    await forget(store, work)
    assert "gnarlsburg" not in await everything(store)
    await process(store, "c", 5, "home: Gnarlsburg")
    assert set(await held(store)) == ({"Gnarlsburg"} if is_undone else set())


@pytest.mark.parametrize("work", [lambda it: it.forget_before(day(2)), lambda it: it.forget_session("a")])
async def test_a_withdrawal_of_more_than_was_forgotten_stays(store: Store, work: ErasureWork) -> None:
    await process(store, "a", 1, "home: Gnarlsburg")
    await process(store, "b", 5, "home: Gnarlsburg")
    await reviews.withdraw_fact(store, LENA, (await held(store))["Gnarlsburg"].id, at=day(8))
    await forget(store, work)
    assert not (await held(store))["Gnarlsburg"].is_served


async def test_proposals_that_wait_or_were_dropped_are_forgotten_too(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg")
    dry = await process(store, "b", 2, "home: Gnarlsburg", "drink: oolong", apply=False)
    await forget(store, of((await held(store))["Gnarlsburg"]))
    assert "gnarlsburg" not in await everything(store)
    assert dry.run_id is not None
    await apply_proposal(store, dry.run_id, judge=RulesJudge())
    assert set(await held(store)) == {"oolong"}


async def test_what_was_asked_to_be_erased_goes_with_the_request(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    await process(store, "b", 2, "forget home: Gnarlsburg")
    assert set(await held(store)) == {"oolong"}, "hidden at once"
    with store.reading() as transaction:
        (asked,) = forgotten_statements.read_erase_requests_in_force(transaction, LENA)
    assert len(asked.ids) == 2
    receipt = await forgetting.forget_requested_statements(store, LENA, at=NOW)
    assert receipt is not None
    assert await store.compact()
    assert "gnarlsburg" not in await everything(store)
    assert await forgetting.forget_requested_statements(store, LENA, at=NOW) is None
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    await process(store, "b", 2, "forget home: Gnarlsburg")
    assert set(await held(store)) == {"oolong"}
    assert "gnarlsburg" not in await everything(store)


async def test_what_is_said_after_a_request_to_forget_keeps_its_words(store: Store) -> None:
    await process(store, "a", 1, "supplier: Gnarlsburg", "drink: oolong")
    await process(store, "b", 2, "forget supplier: Gnarlsburg")

    def found(window: Window) -> list[Candidate]:
        words = "Gnarlsburg brings butter on Fridays now"
        delivery = Candidate(
            kind=Kind.ENTITY,
            subject="Gnarlsburg",
            attribute="delivery",
            value="butter on Fridays",
            statement="Gnarlsburg brings butter on Fridays.",
            evidence=[Citation(turn=1, quote=words)],
        )
        return [delivery]

    later = state("Gnarlsburg brings butter on Fridays now.")
    saved = Saved(LENA, "c", state=later, started_at=day(12), ended_at=day(12))
    await process_session(store, saved, extractor=OracleExtractor(found))
    await forgetting.forget_requested_statements(store, LENA, at=NOW)
    fact = (await held(store))["butter on Fridays"]
    assert (fact.subject, fact.statement) == ("Gnarlsburg", "Gnarlsburg brings butter on Fridays.")
    assert fact.evidence[0].quote == "Gnarlsburg brings butter on Fridays now"
    with store.reading() as transaction:
        assert "gnarlsburg" not in str(sessions.read_turns(transaction, LENA, "a")).casefold()


async def test_forgetting_the_session_of_a_request_carries_the_request_out(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    await process(store, "b", 5, "forget home: Gnarlsburg", "seat: window")
    receipt = await forget(store, lambda erasure: erasure.forget_session("b"))
    assert receipt.erased["facts"] == 2, "the seat, and the home that was hidden"
    assert set(await held(store)) == {"oolong"}
    assert "gnarlsburg" not in await everything(store)
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong", "colour: red")
    assert set(await held(store)) == {"oolong", "red"}


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "session"])
async def test_what_was_said_again_after_a_request_stays(store: Store, is_asked: bool) -> None:
    await process(store, "a", 1, "home: Gnarlsburg", "drink: oolong")
    await process(store, "b", 5, "forget home: Gnarlsburg")
    await process(store, "c", 9, "home: Gnarlsburg")
    if is_asked:
        assert await forgetting.forget_requested_statements(store, LENA, at=NOW)
    else:
        await forget(store, lambda erasure: erasure.forget_session("b"))
    for session_id, on in (("a", 1), ("c", 9)):
        await process(store, session_id, on, "home: Gnarlsburg", "colour: red")
        assert (await held(store))["Gnarlsburg"].said_at == day(9)
        assert (await held(store))["Gnarlsburg"].support == 1


async def test_a_preview_counts_and_changes_nothing(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg")
    before = await everything(store)
    seen = await forgetting.erase_in_scope(store, LENA, of((await held(store))["Gnarlsburg"]), at=NOW, is_preview=True)
    assert seen.erased["assertions"] == 1
    assert await everything(store) == before


async def test_a_quote_that_another_fact_shares_loses_only_the_value(store: Store) -> None:
    await process(store, "a", 1, "home: Gnarlsburg; drink: oolong")
    await forget(store, of((await held(store))["Gnarlsburg"]))
    (fact,) = (await held(store)).values()
    assert fact.value == "oolong"
    assert [item.quote for item in fact.evidence] == ["home: [forgotten]; drink: oolong"]
    assert "gnarlsburg" not in await everything(store)
    again = await process(store, "a", 1, "home: Gnarlsburg; drink: oolong")
    assert again.rejected == {"forgotten": 1}, "a blank is no value"
    assert set(await held(store)) == {"oolong"}


class Agent:
    """What `record_session` needs of an agent: its state."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)
        self.loaded: dict[str, Any] = {}

    async def save_state(self) -> dict[str, Any]:
        return state(*self.said) if self.said else self.loaded

    async def load_state(self, kept: Any) -> None:
        self.loaded = dict(kept)


async def save(store: Store, agent: Agent) -> None:
    async with record_session(agent, user="lena", session_id="live", store=store):
        pass


@pytest.fixture
async def live(store: Store) -> Agent:
    """An agent whose conversation was recorded and processed, and goes on."""
    agent = Agent("home: Gnarlsburg", "drink: oolong")
    await save(store, agent)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    return agent


async def test_an_agent_that_still_knows_the_words_does_not_bring_them_back(store: Store, live: Agent) -> None:
    await forget(store, of((await held(store, at=datetime.now(UTC)))["Gnarlsburg"]), at=datetime.now(UTC))
    await resume(live, user="lena", session_id="live", store=store)
    assert "gnarlsburg" not in json.dumps(live.loaded).casefold()
    live.said.append("seat: window")
    await save(store, live)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert set(await held(store, at=datetime.now(UTC))) == {"oolong", "window"}
    assert await store.compact()
    assert "gnarlsburg" not in await everything(store)
    live.said.append("home: Gnarlsburg")
    await save(store, live)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert "Gnarlsburg" in await held(store, at=datetime.now(UTC) + timedelta(days=1)), "said again, it is new"


async def test_a_forgotten_session_that_goes_on_keeps_only_what_is_new(store: Store, live: Agent) -> None:
    await forget(store, lambda erasure: erasure.forget_session("live"), at=datetime.now(UTC))
    live.said.append("seat: window")
    await save(store, live)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert set(await held(store, at=datetime.now(UTC))) == {"window"}
    kept = await everything(store)
    assert "gnarlsburg" not in kept
    assert "oolong" not in kept


async def test_a_new_agent_in_a_forgotten_session_is_heard_from_its_first_words(store: Store, live: Agent) -> None:
    """The old agent saves its state again later: nothing comes back, and what it heard meanwhile is new."""
    await forget(store, lambda erasure: erasure.forget_session("live"), at=datetime.now(UTC))
    new, later = Agent("seat: window", "diet: vegan"), timedelta(days=1)
    await save(store, new)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert set(await held(store, at=datetime.now(UTC))) == {"window", "vegan"}
    live.said.append("pet: cat")
    await save(store, live)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert set(await held(store, at=datetime.now(UTC) + later)) == {"window", "vegan", "cat"}
    assert "gnarlsburg" not in await everything(store)
    new.said.append("home: Gnarlsburg")
    await save(store, new)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert "Gnarlsburg" in await held(store, at=datetime.now(UTC) + later), "it follows words of after the forgetting"


async def test_turns_taken_for_forgotten_ones_are_counted(store: Store, live: Agent) -> None:
    """A new agent says first what was forgotten. Its state could as well be a part of the old one."""
    await forget(store, lambda erasure: erasure.forget_session("live"), at=datetime.now(UTC))
    await save(store, Agent("drink: oolong"))
    outcome = await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert (outcome.turns, outcome.transcript.skipped) == (0, {"forgotten": 2})
    with store.reading() as transaction:
        session = sessions.find_session(transaction, LENA, "live")
        assert session is not None
        assert session.skipped == {"forgotten": 2}


async def test_a_tombstone_of_an_earlier_version_covers_the_first_turns(store: Store, live: Agent) -> None:
    """It is the only tombstone of its session, and says how many turns were forgotten."""
    await forget(store, lambda erasure: erasure.forget_session("live"), at=datetime.now(UTC))
    with store.writing() as transaction:
        transaction.connection().execute(delete(TombstoneRow).where(col(TombstoneRow.kind) == "text"))
        transaction.connection().execute(update(TombstoneRow).values(times=4))
    live.said.append("seat: window")
    for _ in range(2):
        await save(store, live)
        await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert set(await held(store, at=datetime.now(UTC))) == {"window"}
    kept = await everything(store)
    assert not [word for word in ("gnarlsburg", "oolong") if word in kept]


async def test_a_resumed_agent_that_hears_it_again_is_heard(store: Store, live: Agent) -> None:
    await forget(store, of((await held(store, at=datetime.now(UTC)))["Gnarlsburg"]), at=datetime.now(UTC))
    await resume(live, user="lena", session_id="live", store=store)
    said = [
        message["content"] for message in live.loaded["llm_context"]["messages"] if message["type"] == "UserMessage"
    ]
    assert said == ["[forgotten]", "drink: oolong"]
    live.said.clear()
    live.loaded["llm_context"]["messages"] += state("home: Gnarlsburg")["llm_context"]["messages"]
    await save(store, live)
    await process_session(store, Saved(LENA, "live"), extractor=OracleExtractor(find))
    assert "Gnarlsburg" in await held(store, at=datetime.now(UTC) + timedelta(days=1))


async def test_a_fact_that_stays_is_not_counted_as_forgotten(store: Store) -> None:
    """One of the two statements of a fact was asked to be forgotten, before the other was made."""
    told = stated("Lena lives in Gnarlsburg.", 1, attribute="home", value="Gnarlsburg")
    asked = stated("Forget where Lena lives.", 2, attribute="home", value="", act=SpeechAct.ERASE)
    again = stated("Lena lives in the old town.", 3, attribute="home", value="old town")
    tea = stated("Lena likes tea.", 4, attribute="drink", value="tea")
    no_tea = stated("Forget the tea.", 5, attribute="drink", value="tea", act=SpeechAct.ERASE)
    run(
        store,
        "session:a",
        (told, asked, again, tea, no_tea),
        (
            Verdict(told.id, asked.id, Relation.RETRACTS, "asked", "test"),
            Verdict(told.id, again.id, Relation.SAME, "the same", "test"),
            Verdict(tea.id, no_tea.id, Relation.RETRACTS, "asked", "test"),
        ),
    )
    assert set(await held(store)) == {"old town"}
    receipt = await forgetting.forget_requested_statements(store, LENA, at=NOW, is_preview=True)
    assert receipt is not None
    assert receipt.erased["facts"] == 1, "the tea"
    await forgetting.forget_requested_statements(store, LENA, at=NOW)
    assert set(await held(store)) == {"old town"}
