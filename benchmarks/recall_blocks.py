"""LoCoMo with its observations as facts, in a store: which evidence the block tells that an agent gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import locomo

from afterword.facts.assertions import OWNER, Assertion, Authority, Evidence, EvidenceKind, Kind, SpeechAct
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript, Turn, TurnPlace
from afterword.privacy.policy import Privacy
from afterword.recall.vectors import LocalEmbedder
from afterword.settings import Settings
from afterword.store import ledger, sessions
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.reading.recall import recall
from afterword.store.reading.scope_vectors import refresh_vectors


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A conversation in a store, the instant after it, and the turns by the ids of LoCoMo."""

    scope: Scope
    ended_at: datetime
    turns: dict[str, tuple[str, Turn]]

    def places(self, names: Sequence[str] | None) -> list[TurnPlace]:
        """Return the places of the turns with these ids."""
        return [(self.turns[name][0], self.turns[name][1].number) for name in names or () if name in self.turns]


def telling_other_people() -> Privacy:
    """Return the default settings of a store, with the words of both people told."""
    defaults = Settings()
    recalling = defaults.recall.model_copy(update={"other_people": True})
    return defaults.model_copy(update={"recall": recalling}).privacy_of_store()


async def shares_told(
    conversation: str, budgets: Sequence[int], embedder: LocalEmbedder | None
) -> dict[int, list[float]]:
    """Return, for each budget, the share of its evidence that the block tells for each question without category 5.

    Evidence is told as a turn, or as a fact that rests on it.
    """
    shares: dict[int, list[float]] = {budget: [] for budget in budgets}
    async with Store("sqlite://", privacy=telling_other_people()) as store:
        await store.migrate()
        kept = _keep(store, conversation)
        if embedder is not None:
            await refresh_vectors(store, kept.scope, embedder, at=kept.ended_at)
        for question in locomo.rows("questions", conversation):
            evidence = kept.places(question["evidence_messages"])
            if not evidence or question["category"] == "adversarial":
                continue
            for budget in budgets:
                recalled = await recall(
                    store, kept.scope, question["text"], at=kept.ended_at, budget_tokens=budget, embedder=embedder
                )
                told = locomo.told_turns(recalled)
                shares[budget].append(sum(place in told for place in evidence) / len(evidence))
    return shares


def _keep(store: Store, conversation: str) -> KeptConversation:
    rows = list(locomo.rows("sessions", conversation))
    scope = Scope.user(rows[0]["messages"][0]["source"].lower())
    made = [locomo.session(row) for row in rows]
    kept = KeptConversation(scope, made[-1].ended_at + timedelta(hours=1), {})
    with store.writing() as transaction:
        for row, session in zip(rows, made, strict=True):
            turns = [
                Turn(number, said.source, Role.HUMAN, str(said.content), said.at)
                for number, said in enumerate(session.messages, 1)
            ]
            named = zip((message["id"] for message in row["messages"]), turns, strict=True)
            kept.turns.update({name: (session.session_id, turn) for name, turn in named})
            speakers = tuple(dict.fromkeys(turn.speaker for turn in turns))
            transcript = Transcript(tuple(turns), "LoCoMo", speakers)
            sessions.save_transcript(transaction, scope, session.session_id, transcript, kept.ended_at, is_done=True)
        reading = WindowReading("observations", None, None, tuple(_observations(kept, conversation)))
        proposal = Proposal(scope, "import:LoCoMo", "import", "LoCoMo", "LoCoMo", kept.ended_at, 0, (reading,))
        ledger.apply_run(transaction, scope, ledger.propose_run(transaction, proposal), kept.ended_at)
    return kept


def _observations(kept: KeptConversation, conversation: str) -> list[Assertion]:
    people = {turn.speaker for _, turn in kept.turns.values()}
    made = []
    for number, fact in enumerate(locomo.rows("facts", conversation)):
        cited = [kept.turns[name] for name in fact["evidence"] or () if name in kept.turns]
        if not cited:
            continue
        session_id, first = cited[0]
        about = next((name for name in people if fact["text"].startswith(name)), first.speaker)
        assert first.said_at is not None
        made.append(
            Assertion(
                id=f"{number:032x}",
                scope=kept.scope,
                session_id=session_id,
                act=SpeechAct.STATE,
                kind=Kind.ENTITY,
                subject=OWNER if about.lower() == kept.scope.id else about,
                attribute="note",
                value="",
                statement=fact["text"],
                speaker=first.speaker,
                authority=Authority.STATED,
                said_at=first.said_at,
                evidence=tuple(
                    Evidence(EvidenceKind.TURN, turn.text, session, turn.number, turn.speaker, 0)
                    for session, turn in cited
                ),
            )
        )
    return made
