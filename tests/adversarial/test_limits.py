"""No small input stops the service: work grows in proportion to the input, and a session has a limit of time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from afterword.extractors import conversation
from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts import similarity
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.budget import Account, Budget, CostTracker
from afterword.pipeline.errors import TimeReached
from afterword.pipeline.intake import Saved
from afterword.pipeline.memory_import import import_memories
from afterword.pipeline.session import process_session
from afterword.pipeline.sources.other_libraries import ExportedMemory, ExportingLibrary
from afterword.pipeline.window_reader import NOT_EXAMINED
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.policy import Privacy
from afterword.privacy.seen_turns import TurnsToRecognise
from afterword.privacy.tombstones import ForgottenContent, Tombstone, TombstoneKey, TombstoneKind
from afterword.store import lookup
from afterword.store.database.engine import Store
from batches import state

MIRA = Scope.user("mira")
AT = datetime(2026, 3, 1, tzinfo=UTC)
MOST_GROWTH = 8.0
"""Four times the input may take a little more than four times the work. A square takes sixteen times."""
TRIES = 3
SIZE = 50

Work = Callable[[int], Awaitable[None]]


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + digit) for digit in (number % 26, number // 26 % 26, number // 676))


SENTENCES: dict[str, Callable[[int], str]] = {
    "homes, one after the other": lambda number: f"I live in City{number}.",
    "corrections": lambda number: f"Actually, I live in City{number}.",
    "homes that are forgotten again": lambda number: f"I live in City{number}. Forget that I live in City{number}.",
    "sisters": lambda number: f"My sister Ana{_letters(number)} lives in Porto.",
    "likes": lambda number: f"I like thing{number}.",
    "decisions": lambda number: f"We decided to use Tool{number} for the app.",
    "standing instructions": lambda number: f"Never use tool{number}.",
    "empty paragraphs": lambda _: "I\n\n",
    "please": lambda _: "please " * 12,
    "pictures": lambda _: "![a](http://a?" * 6,
}


async def _process(store: Store, said: Sequence[str]) -> None:
    saved = Saved(MIRA, "monday", state=state(*said), started_at=AT, ended_at=AT + timedelta(days=1))
    await process_session(store, saved, extractor=RulesExtractor())


def _one_turn(sentence: Callable[[int], str]) -> Work:
    async def work(size: int) -> None:
        async with Store("sqlite://") as store:
            await store.migrate()
            await _process(store, [" ".join(map(sentence, range(size)))])

    return work


def _many_turns(sentence: Callable[[int], str]) -> Work:
    async def work(size: int) -> None:
        async with Store("sqlite://") as store:
            await store.migrate()
            await _process(store, list(map(sentence, range(size))))

    return work


async def _import_memories(size: int) -> None:
    memories = [
        ExportedMemory(f"Likes dish {number} with {_letters(number)} sauce", str(number), AT) for number in range(size)
    ]
    async with Store("sqlite://") as store:
        await store.migrate()
        await import_memories(store, MIRA, ExportingLibrary.MEM0, memories, at=AT, file_time=AT, judge=RulesJudge())


async def _forget_a_session(size: int) -> None:
    """Blank a state whose turns were all forgotten, and which holds as many other texts."""
    number_of_turns = 20 * size
    texts = [f"Hi {_letters(number)}{number}." for number in range(number_of_turns)]
    turns = tuple(Turn(number, "user", Role.HUMAN, text, AT) for number, text in enumerate(texts, 1))
    transcript = Transcript(turns, layout="made here", humans=("user",))
    key = TombstoneKey("key", b"x" * 32)
    tombstone = Tombstone(TombstoneKind.SESSION, key.id, key.session_hash(MIRA, "monday"), "", AT)
    forgotten = ForgottenContent(MIRA, "monday", [key], [tombstone])
    shown = forgotten.blank_in_transcript(TurnsToRecognise(transcript, transcript))
    others = [f"Hey {number}." for number in range(number_of_turns)]
    # Below a key of names, too, a list may hold words.
    state = forgotten.blank_in_state({"said": texts, "others": others, "name": texts[:1]}, turns, shown.turns)
    assert state == {"said": [FORGOTTEN] * number_of_turns, "others": others, "name": [FORGOTTEN]}


WORKS: dict[str, Work] = {
    **{name: _one_turn(sentence) for name, sentence in SENTENCES.items()},
    "homes, each in a turn of its own": _many_turns(SENTENCES["homes, one after the other"]),
    "likes, each in a turn of its own": _many_turns(SENTENCES["likes"]),
    "turns of one letter": _many_turns(lambda _: "a"),
    "memories of another library": _import_memories,
    "forgotten turns beside other texts": _forget_a_session,
}


async def test_candidates_beyond_the_bound_of_a_session_are_counted_but_not_examined() -> None:
    async with Store("sqlite://", privacy=Privacy(facts_per_session=5)) as store:
        await store.migrate()
        saved = Saved(MIRA, "monday", state=state(" ".join(map(SENTENCES["likes"], range(40)))), started_at=AT)
        outcome = await process_session(store, saved, extractor=RulesExtractor())
        refused = await store.read(lambda transaction: lookup.read_rejected_candidates(transaction, MIRA, "monday"))
    assert outcome.rejected == {"too_many": 35}
    assert [statement for _, statement, _ in refused] == [
        *(f"The user likes thing{number}." for number in range(5, 10)),
        *[NOT_EXAMINED] * 30,
    ]
    assert {reason for reason, _, _ in refused} == {"too_many"}
    assert refused[-1][2].startswith("turn 1: the session says more")


async def _seconds(work: Work, size: int) -> float:
    before = time.process_time()
    await work(size)
    return time.process_time() - before


async def _growth(work: Work, size: int) -> float:
    """Return how much the work grows from this size to four times the size, without what an empty session takes."""
    empty, once, four_times = [await _seconds(work, count) for count in (1, size, 4 * size)]
    return (four_times - empty) / max(once - empty, 0.01)


@pytest.mark.parametrize("name", WORKS)
async def test_four_times_the_input_takes_about_four_times_the_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # With a shorter reach a small input already shows how the work grows beyond it.
    for reach in ("SLOT_REACH", "WORD_REACH", "CLEARING_REACH"):
        monkeypatch.setattr(similarity, reach, 4)
    monkeypatch.setattr(conversation, "LETTERS_AROUND", 50)
    growths = []
    for _ in range(TRIES):
        growths.append(await _growth(WORKS[name], SIZE))
        # What is slow by itself is slow each time, what another process slowed down is not.
        if growths[-1] <= MOST_GROWTH:
            return
    pytest.fail(f"from {SIZE} to {4 * SIZE} the work grows {min(growths):.1f} times")


class _SlowExtractor(RulesExtractor):
    """An extractor that works on every window for a while, without a call."""

    async def extract(self, window: Window) -> Extraction:
        time.sleep(0.05)  # noqa: ASYNC251 - it holds the event loop, as rules do
        return await super().extract(window)


def _long_session(name: str = "monday") -> Saved:
    said = ["I had a good day. " * 200] * 40
    return Saved(MIRA, name, state=state(*said), started_at=AT, ended_at=AT + timedelta(days=1))


async def test_a_session_that_takes_too_long_fails_with_its_reason_and_leaves_nothing() -> None:
    async with Store("sqlite://") as store:
        await store.migrate()
        with pytest.raises(TimeReached, match=r"more than 0.1 s, so it was stopped.*budget.seconds_per_session"):
            await process_session(
                store, _long_session(), extractor=_SlowExtractor(), budget=Budget(seconds_per_session=0.1)
            )
        assert await store.read(lambda transaction: lookup.read_knowledge(transaction, MIRA).assertions) == ()
        [failure] = await run_batch(
            store, [_long_session()], extractor=_SlowExtractor(), budget=Budget(seconds_per_session=0.1)
        )
        assert isinstance(failure, Failure)
        assert failure.reason.startswith("TimeReached: processing the session took more than 0.1 s")


async def test_the_event_loop_answers_while_a_long_session_is_read() -> None:
    delays = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0)
            delays.append(time.monotonic() - before)
            await asyncio.sleep(0.01)

    async with Store("sqlite://") as store:
        await store.migrate()
        ticking = asyncio.create_task(tick())
        await process_session(store, _long_session(), extractor=_SlowExtractor())
        ticking.cancel()
    assert len(delays) > 5


async def test_waiting_for_a_model_or_for_another_session_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, skipped_s = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + skipped_s)

    async def skip(seconds: float) -> None:
        """Put the clock of the loop forward, and let it do what is due."""
        nonlocal skipped_s
        skipped_s += seconds
        await asyncio.sleep(0.001)

    async with Store("sqlite://") as store:
        account = Account(CostTracker(Budget(seconds_per_session=600)), store, MIRA, "session:monday")
        async with account.time_limit():
            with account.pausing_time_limit():
                await skip(900)
                with account.pausing_time_limit():
                    await skip(300)
            await skip(150)

        async def work_too_long() -> None:
            async with account.time_limit():
                with account.pausing_time_limit():
                    await skip(150)
                await skip(3000)

        with pytest.raises(TimeReached):
            await work_too_long()
