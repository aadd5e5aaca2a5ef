"""Process stories with the whole pipeline, and return the stored facts and the model usage.

A `Story` is a scenario without its gold facts, so the pipeline cannot see them. `UserTurnExtractor` is an extractor for
comparison, which keeps every turn of a person unchanged.
"""

from __future__ import annotations

import json
import random
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from afterword.evaluation.scenarios.saved_messages import saved_messages
from afterword.evaluation.scenarios.scenario import Session, Story
from afterword.extractors.candidate_texts import LONGEST_BY_FIELD
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Extractor, Rejection, Usage, Window
from afterword.extractors.judge import Judge, OtherNames, Pair, SelectiveJudge, pairs_a_statement
from afterword.facts.assertions import Kind, Verdict
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import lookup
from afterword.store.database.engine import Store
from afterword.store.reading.told_memory import read_facts_with_ended_parts

SessionOrder = Literal["file", "arrival", "shuffle"]


class UserTurnExtractor:
    """Returns each turn of a person unchanged, split into parts that fit a statement. For comparison only."""

    version = "every-user-turn"

    async def extract(self, window: Window) -> Extraction:
        """Return the words of all people as candidates."""
        return Extraction(
            tuple(
                Candidate(
                    kind=Kind.ENTITY,
                    subject="user",
                    attribute="said",
                    value=part[: LONGEST_BY_FIELD["value"]],
                    statement=part,
                    evidence=[Citation(turn=turn.number, quote=part)],
                )
                for turn in window.turns
                if turn.role is Role.HUMAN
                for part in textwrap.wrap(turn.text, LONGEST_BY_FIELD["statement"])
            )
        )

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:  # noqa: ARG002 - the protocol's
        """Return no candidates, because copies need no repair."""
        return Extraction(())


@dataclass(frozen=True, slots=True)
class EvaluatedSystem:
    """An extractor and a judge, under the name that the scorecard shows."""

    name: str
    extractor: Extractor
    judge: Judge


@dataclass(frozen=True, slots=True)
class TrialUsage:
    """The calls and tokens of all answered model requests: to extract, to repair refused candidates, and to judge.

    `repairs` counts the requests for repair. Failed requests are not counted.
    """

    extraction: Usage = field(default_factory=Usage)
    repair: Usage = field(default_factory=Usage)
    judging: Usage = field(default_factory=Usage)
    repairs: int = 0

    @property
    def total(self) -> Usage:
        """The sum of extraction, repair and judging."""
        return self.extraction + self.repair + self.judging


@dataclass(frozen=True, slots=True)
class Trial:
    """What one system made of the stories.

    `facts` maps a scenario's id to all facts in the store, with their status at the end of its last session.
    `failures` lists (scenario id, failed session); a failed session yields no facts. `unjudged` counts the pairs of
    statements that were not compared.
    """

    system: EvaluatedSystem
    facts: Mapping[str, Sequence[Fact]]
    failures: Sequence[tuple[str, Failure]]
    usage: TrialUsage
    unjudged: int


async def run_trial(
    stories: Sequence[Story],
    system: EvaluatedSystem,
    folder: Path,
    *,
    order: SessionOrder = "file",
    seed: int = 0,
    on_done: Callable[[SessionOutcome | Failure], None] = lambda _: None,
) -> Trial:
    """Process every session of the stories in a new store in `folder`, and return the facts in it.

    Each story has its own scope. `order` is the order in which its sessions are processed. "file" is the order of time,
    "arrival" is the story's order of arrival, if it has one, and "shuffle" depends on `seed`.
    """
    scopes = story_scopes(stories)
    sessions = [
        _write_session(story, session, scopes[story.id], folder)
        for story in stories
        for session in _ordered_sessions(story, order, seed)
    ]
    extractor = _MeteredExtractor(system.extractor)
    judge = _MeteredJudge(system.judge)
    async with Store(f"sqlite:///{folder / 'afterword.db'}") as store:
        await store.migrate()
        results = await run_batch(store, sessions, extractor=extractor, judge=judge, on_done=on_done)
        facts = {story.id: await _stored_facts(store, scopes[story.id], story) for story in stories}
    names = {scope: name for name, scope in scopes.items()}
    return Trial(
        system=system,
        facts=facts,
        failures=[(names[result.scope], result) for result in results if isinstance(result, Failure)],
        usage=TrialUsage(extractor.extraction, extractor.repairing, judge.judging, extractor.repairs),
        unjudged=sum(result.unjudged for result in results if isinstance(result, SessionOutcome)),
    )


def story_scopes(stories: Sequence[Story]) -> dict[str, Scope]:
    """Return a scope for each story. Stories of the same user get different tenants, so that they stay apart."""
    users = [story.user_id for story in stories]
    shared = {user for user in users if users.count(user) > 1}
    return {
        story.id: Scope.user(story.user_id, tenant=story.id) if story.user_id in shared else Scope.user(story.user_id)
        for story in stories
    }


def _ordered_sessions(story: Story, order: SessionOrder, seed: int) -> list[Session]:
    if order == "shuffle":
        return random.Random(f"{seed}/{story.id}").sample(story.sessions, len(story.sessions))
    if order == "arrival" and story.arrival:
        return sorted(story.sessions, key=lambda session: (story.arrival or []).index(session.session_id))
    return list(story.sessions)


def _write_session(story: Story, session: Session, scope: Scope, folder: Path) -> Saved:
    """Write the session's messages as AutoGen would, and return it as a saved session that can be processed."""
    path = folder / "states" / story.id / f"{session.session_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(saved_messages(session), ensure_ascii=False), encoding="utf-8")
    return Saved(
        scope,
        session.session_id,
        path=path,
        humans=session.humans,
        started_at=session.started_at,
        ended_at=session.ended_at,
    )


async def _stored_facts(store: Store, scope: Scope, story: Story) -> list[Fact]:
    """Return all facts. If a part of a fact has ended, it is listed twice: in its present and in its former form."""
    ended_at = max(session.ended_at for session in story.sessions)
    facts = await store.read(lambda db: lookup.read_facts(db, scope, at=ended_at))
    return [*facts, *await read_facts_with_ended_parts(store, scope, at=ended_at)]


class _MeteredExtractor:
    def __init__(self, extractor: Extractor) -> None:
        self.extraction, self.repairing, self.repairs = Usage(), Usage(), 0
        self.version, self._extractor = extractor.version, extractor

    async def extract(self, window: Window) -> Extraction:
        extraction = await self._extractor.extract(window)
        self.extraction += extraction.usage
        return extraction

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        extraction = await self._extractor.repair(window, rejections)
        self.repairing += extraction.usage
        self.repairs += 1
        return extraction


class _MeteredJudge:
    def __init__(self, judge: Judge) -> None:
        self.judging, self._judge = Usage(), judge
        self.version, self.pairs_a_call = judge.version, judge.pairs_a_call
        self.pairs_a_statement = pairs_a_statement(judge)

    async def judge(self, pairs: Sequence[Pair], other_names: OtherNames | None = None) -> tuple[list[Verdict], Usage]:
        if isinstance(self._judge, SelectiveJudge):
            verdicts, usage = await self._judge.judge(pairs, other_names)
        else:
            verdicts, usage = await self._judge.judge(pairs)
        self.judging += usage
        return verdicts, usage
