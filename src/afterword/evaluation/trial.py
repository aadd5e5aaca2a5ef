"""Let stories go through the whole pipeline, and say what the store then holds and what that took.

Nothing here knows the gold: a `Story` has none.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from afterword.evaluation.scenarios import Session, Story
from afterword.evaluation.states import saved_state
from afterword.extractors.extractor import Extraction, Extractor, Rejection, Usage, Window
from afterword.extractors.judge import Judge, Pair
from afterword.facts.assertions import Verdict
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import Outcome
from afterword.store import lookup
from afterword.store.database.engine import Store

Order = Literal["file", "arrival", "shuffle"]


@dataclass(frozen=True, slots=True)
class System:
    """Who extracts and who judges, under the name that the scorecard shows."""

    name: str
    extractor: Extractor
    judge: Judge


@dataclass(frozen=True, slots=True)
class Spent:
    """What answered questions cost: those that propose, those that mend refused candidates, those that judge.

    `repairs` counts questions. What a question that failed had cost is not known to anyone here.
    """

    extraction: Usage = field(default_factory=Usage)
    repair: Usage = field(default_factory=Usage)
    judging: Usage = field(default_factory=Usage)
    repairs: int = 0

    @property
    def whole(self) -> Usage:
        """All of it."""
        return self.extraction + self.repair + self.judging


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of the stories in one system.

    `facts` holds, by scenario id, everything that the store keeps of it, with each status as of the end of its last
    session. A session that failed is in `failures` and gave no facts; `unjudged` counts pairs left to consolidation.
    """

    system: System
    facts: Mapping[str, Sequence[Fact]]
    failures: Sequence[tuple[str, Failure]]
    spent: Spent
    unjudged: int


async def run_trial(
    stories: Sequence[Story],
    system: System,
    folder: Path,
    *,
    order: Order = "file",
    seed: int = 0,
    on_done: Callable[[Outcome | Failure], None] = lambda _: None,
) -> Trial:
    """Process every session of the stories in a new store in `folder`, a scope each, and return what it then holds.

    `order` says how the sessions of a story come in: as in the file, which is the order of time; in their order of
    arrival where the story has one; or shuffled by `seed`.
    """
    scopes = _scopes(stories)
    found = [
        saved
        for story in stories
        for saved in [_saved(story, session, scopes[story.id], folder) for session in _ordered(story, order, seed)]
    ]
    metered = _Metered(system.extractor, system.judge)
    async with Store(f"sqlite:///{folder / 'afterword.db'}") as store:
        await store.migrate()
        ended = await run_batch(store, found, extractor=metered, judge=metered.judge_of(), on_done=on_done)
        facts = {story.id: await _held(store, scopes[story.id], story) for story in stories}
    names = {scope: name for name, scope in scopes.items()}
    return Trial(
        system=system,
        facts=facts,
        failures=[(names[one.scope], one) for one in ended if isinstance(one, Failure)],
        spent=metered.spent,
        unjudged=sum(one.unjudged for one in ended if isinstance(one, Outcome)),
    )


def _scopes(stories: Sequence[Story]) -> dict[str, Scope]:
    """Return a scope for each story; where two tell of one user, each gets a tenant of its own."""
    users = [story.user_id for story in stories]
    shared = {user for user in users if users.count(user) > 1}
    return {
        story.id: Scope.user(story.user_id, tenant=story.id) if story.user_id in shared else Scope.user(story.user_id)
        for story in stories
    }


def _ordered(story: Story, order: Order, seed: int) -> list[Session]:
    if order == "shuffle":
        return random.Random(f"{seed}/{story.id}").sample(story.sessions, len(story.sessions))
    if order == "arrival" and story.arrival:
        by_id = {session.session_id: session for session in story.sessions}
        return [by_id[name] for name in story.arrival]
    return list(story.sessions)


def _saved(story: Story, session: Session, scope: Scope, folder: Path) -> Saved:
    """Write a session's state as AutoGen would, and return where it lies and what a manifest would say of it."""
    path = folder / "states" / story.id / f"{session.session_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(saved_state(session, story.id), ensure_ascii=False), encoding="utf-8")
    return Saved(
        scope,
        session.session_id,
        path=path,
        humans=session.humans,
        started_at=session.started_at,
        ended_at=session.ended_at,
    )


async def _held(store: Store, scope: Scope, story: Story) -> list[Fact]:
    return await store.read(
        lambda db: lookup.read_facts(db, scope, at=max(session.ended_at for session in story.sessions))
    )


class _Metered:
    """An extractor, and the judge beside it, that keep count of what they were asked."""

    def __init__(self, extractor: Extractor, judge: Judge) -> None:
        self.spent = Spent()
        self._extractor, self._judge = extractor, judge

    @property
    def version(self) -> str:
        return self._extractor.version

    async def extract(self, window: Window) -> Extraction:
        found = await self._extractor.extract(window)
        self._add(extraction=found.usage)
        return found

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        found = await self._extractor.repair(window, rejections)
        self._add(repair=found.usage, repairs=1)
        return found

    def judge_of(self) -> Judge:
        return _MeteredJudge(self._judge, lambda usage: self._add(judging=usage))

    def _add(
        self,
        extraction: Usage = Usage(),  # noqa: B008 - frozen
        repair: Usage = Usage(),  # noqa: B008 - frozen
        judging: Usage = Usage(),  # noqa: B008 - frozen
        repairs: int = 0,
    ) -> None:
        before = self.spent
        self.spent = Spent(
            before.extraction + extraction, before.repair + repair, before.judging + judging, before.repairs + repairs
        )


class _MeteredJudge:
    def __init__(self, judge: Judge, note: Callable[[Usage], None]) -> None:
        self._judge, self._note = judge, note

    @property
    def version(self) -> str:
        return self._judge.version

    @property
    def pairs_a_call(self) -> int | None:
        return self._judge.pairs_a_call

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        verdicts, usage = await self._judge.judge(pairs)
        self._note(usage)
        return verdicts, usage
