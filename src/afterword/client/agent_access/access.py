"""One scope as an agent may use it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from afterword.client.agent_access.cleaning import (
    cleaned_assertion,
    cleaned_fact,
    cleaned_finding,
    cleaned_hit,
    cleaned_turn,
)
from afterword.client.arguments import Several, choices, fact_cursor, fact_filter, page, tag_names
from afterword.client.results import ContextBlock, FactOrigin, FactPage, SearchResults, SessionPage
from afterword.errors import ArgumentInvalid, NotFound
from afterword.facts.assertions import OWNER, Kind
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.owners import is_generic
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.transcripts import SourceTurn
from afterword.facts.words import folded, snake_case
from afterword.store import requests
from afterword.store.entered_statements import Entry
from afterword.store.findings.saved_findings import SavedFinding
from afterword.store.forgetting.erasure import Receipt
from afterword.store.reading.told_facts import read_told_facts, read_told_findings, read_told_turns
from afterword.store.requests import RequestOutcome
from afterword.store.reviews import Decision
from afterword.store.run_effects import RunEffect
from afterword.store.sessions import SavedSession

if TYPE_CHECKING:
    from afterword.client.resources import Resources
    from afterword.client.scope_memory import ScopeMemory


@dataclass(frozen=True, slots=True)
class ToldSession:
    """A session, the turns of it that an agent may be shown, and the facts that it supports and agents are told.

    `left_out` counts the turns that are not shown: those of other speakers, of agents and tools, pasted ones, commands
    to an assistant, and turns that name what was withdrawn or replaced.
    """

    session: SavedSession
    turns: tuple[SourceTurn, ...]
    facts: tuple[Fact, ...]
    left_out: int


class AgentAccess:
    """The memory of one scope as an agent may use it, from `ScopeMemory.for_agent`.

    An agent reads what a block could tell it, in the same cleaned form: what holds, and what held before. What it asks
    to remember, to correct or to withdraw waits for a person, since a page may have told the agent to ask for it.
    Reading creates no scope. Every method raises `StoreError` if the store does not answer.
    """

    def __init__(self, memory: ScopeMemory, resources: Resources) -> None:
        self._memory, self._resources = memory, resources

    @property
    def scope(self) -> Scope:
        """The scope."""
        return self._memory.scope

    async def facts(
        self,
        *,
        status: Several | None = None,
        kind: Several | None = None,
        about: str | None = None,
        tags: Several = (),
        limit: int | None = None,
        after: str | None = None,
    ) -> FactPage:
        """Return the facts that agents may be told, in the order of saying.

        The arguments are those of `ScopeMemory.facts`. Raises `ArgumentInvalid`.
        """
        wanted = fact_filter(status, kind, about, tags)
        fitting = [fact for fact in sorted(await self._agent_facts(), key=fact_cursor) if wanted.fits(fact)]
        chosen = [fact for fact in fitting if wanted.has_status(fact)]
        shown, next_cursor = page(chosen, fact_cursor, limit=limit, after=after)
        return FactPage(tuple(map(cleaned_fact, shown)), len(chosen), len(fitting) - len(chosen), next_cursor)

    async def fact(self, fact_id: str) -> Fact:
        """Return a fact by its id or at least its first 6 digits.

        Raises `NotFound` if there is none, or none that agents may be told.
        """
        return cleaned_fact(await self._agent_fact(fact_id))

    async def history(self, fact_id: str) -> FactOrigin:
        """Return how a fact came to be: its assertions, and the verdicts that relate it to facts that agents are told.

        Raises `NotFound` if there is none, or none that agents may be told.
        """
        fact = await self._agent_fact(fact_id)
        told_ids = {name for each in await self._agent_facts() for name in each.assertion_ids}
        origin = await self._memory.history(fact.id)
        verdicts = tuple(
            replace(recorded, earlier=cleaned_assertion(recorded.earlier), later=cleaned_assertion(recorded.later))
            for recorded in origin.verdicts
            if {recorded.earlier.id, recorded.later.id} <= told_ids
        )
        return FactOrigin(cleaned_fact(fact), tuple(map(cleaned_assertion, origin.assertions)), verdicts)

    async def search(
        self, query: str, *, limit: int | None = 10, kind: Several | None = None, tags: Several = ()
    ) -> SearchResults:
        """Return what matches a query, as `ScopeMemory.search` does. Raises `ArgumentInvalid`.

        If every fact that holds fits the limit, those that do not match follow with the score 0.
        """
        results = await self._memory.search(query, limit=limit, kind=kind, tags=tags)
        hits = list(results.hits)
        if limit is None or results.stored <= limit:
            matching = {fact.id for fact in results.facts}
            others = (await self._memory.search("", limit=limit, kind=kind, tags=tags)).hits
            hits += [hit for hit in others if hit.fact is not None and hit.fact.id not in matching]
        return replace(results, hits=tuple(map(cleaned_hit, hits)))

    async def context(
        self, query: str = "", *, budget_tokens: int | None = None, most_left_out: int | None = None
    ) -> ContextBlock:
        """Return the block for a question, as `ScopeMemory.context` does. Raises `ArgumentInvalid`."""
        return await self._memory.context(query, budget_tokens=budget_tokens, most_left_out=most_left_out)

    async def sessions(self, *, limit: int | None = None, after: str | None = None) -> SessionPage:
        """Return the sessions of the scope, oldest first. Raises `ArgumentInvalid`."""
        return await self._memory.sessions(limit=limit, after=after)

    async def session(self, session_id: str) -> ToldSession:
        """Return a session as agents may be shown it. Raises `NotFound` if the scope has no such session."""
        details = await self._memory.session(session_id)
        store, at = await self._resources.store(), self._resources.now()
        turns = await read_told_turns(store, self.scope, session_id, at=at)
        facts = [
            fact
            for fact in await self._agent_facts()
            if any(evidence.session_id == session_id for evidence in fact.evidence)
        ]
        return ToldSession(
            details.session,
            tuple(map(cleaned_turn, turns)),
            tuple(map(cleaned_fact, facts)),
            len(details.turns) - len(turns),
        )

    async def findings(self, *, agent: str | None = None, limit: int | None = None) -> tuple[AgentFinding, ...]:
        """Return what agents found and other agents are told of it, the newest first. No person said it."""
        store, at = await self._resources.store(), self._resources.now()
        findings = await read_told_findings(store, self.scope, at=at)
        return tuple(cleaned_finding(each) for each in findings if agent is None or each.agent == agent)[:limit]

    async def save_finding(self, statement: str, *, agent: str, topic: str) -> SavedFinding:
        """Store what an agent found, if the scope keeps findings of this agent; return what became of it.

        What the agent has read before is not known, so it counts as found after tool output, and what the memory told
        the agent does not last longer. Raises `ArgumentInvalid`.
        """
        from afterword.recall.block import safe_line

        return await self._memory.save_finding(
            safe_line(statement), agent=agent, topic=safe_line(topic), after_tools=True, is_from_notes=True
        )

    async def remember(
        self,
        statement: str,
        *,
        kind: Kind | str = Kind.ENTITY,
        about: str = "",
        attribute: str = "",
        value: str = "",
        tags: Several = (),
    ) -> RequestOutcome:
        """Ask to remember a sentence, and return what became of the request; `decide` carries out the person's answer.

        `about` is whom it is about, by default the owner of the memory. Its status is `DONE`, without a run, if the
        same sentence holds already. Raises `ArgumentInvalid`.
        """
        from afterword.extractors.slot_relation import relation

        statement = checked_text("statement", statement)
        (known_kind,) = choices(Kind, kind, "kind")
        if any(fact.is_served and folded(fact.statement) == folded(statement) for fact in await self._agent_facts()):
            return RequestOutcome(requests.RequestStatus.DONE)
        entry = Entry(
            statement,
            known_kind,
            self._subject(about),
            snake_case(checked_text("attribute", attribute, may_be_empty=True)) or "note",
            checked_text("value", value, may_be_empty=True) or None,
            tags=tag_names(tags),
        )
        store, at = await self._resources.store(), self._resources.now()
        return await requests.request_statement(store, self.scope, entry, word=None, relate=relation, at=at)

    async def correct(self, fact_id: str, statement: str, *, value: str = "", changed: bool = False) -> RequestOutcome:
        """Ask to replace a fact by another sentence, and return what became of the request.

        With `changed` the fact held until now; by default it was wrong from the start. Raises `NotFound` and
        `ArgumentInvalid`.
        """
        fact = await self._agent_fact(fact_id)
        entry = Entry(
            checked_text("statement", statement),
            fact.kind,
            fact.subject,
            fact.attribute,
            checked_text("value", value, may_be_empty=True) or None,
            tags=fact.tags,
        )
        store, at = await self._resources.store(), self._resources.now()
        return await requests.request_correction(store, self.scope, fact, entry, is_change=changed, at=at)

    async def withdraw(self, fact_id: str) -> RequestOutcome:
        """Ask to withdraw a fact, and return what became of the request. Raises `NotFound`."""
        fact = await self._agent_fact(fact_id)
        store, at = await self._resources.store(), self._resources.now()
        return await requests.request_withdrawal(store, self.scope, fact, word=None, at=at)

    async def decide(self, outcome: RequestOutcome, *, approved: bool) -> RunEffect:
        """Carry out what a person has answered to a request. Raises `NotFound` if it does not wait any more."""
        decision = Decision.APPROVE if approved else Decision.REJECT
        return await self._memory.decide(f"run:{outcome.run_id}", decision)

    async def preview_forget(self, *, fact: str | None = None, session: str | None = None) -> Receipt | None:
        """Return what `forget` would erase, in counts. Raises `NotFound` and `ArgumentInvalid`."""
        return await self._memory.preview_forget(fact=fact, session=session)

    async def forget(self, *, fact: str | None = None, session: str | None = None) -> Receipt | None:
        """Erase a fact or a session for good, on a person's word: ask the person before you call this.

        Raises `NotFound` and `ArgumentInvalid`.
        """
        return await self._memory.forget(fact=fact, session=session)

    async def _agent_facts(self) -> tuple[Fact, ...]:
        return await read_told_facts(await self._resources.store(), self.scope, at=self._resources.now())

    async def _agent_fact(self, fact_id: str) -> Fact:
        known = await self._memory.fact(fact_id)
        told_fact = next((fact for fact in await self._agent_facts() if fact.id == known.id), None)
        if told_fact is None:
            raise NotFound(f"no fact {fact_id!r} that agents are told: it was withdrawn, or waits for a person")
        return told_fact

    def _subject(self, about: str) -> str:
        name = checked_text("about", about, may_be_empty=True)
        is_own_name = self.scope.kind is ScopeKind.USER and folded(name) == folded(self.scope.id)
        return OWNER if not name or is_generic(name) or is_own_name else name


def checked_text(argument: str, text: str, *, may_be_empty: bool = False) -> str:
    """Return a text of an agent on one line. Raises `ArgumentInvalid` if it is too long, or empty and may not be."""
    from afterword.extractors.grounding import LONGEST
    from afterword.recall.block import safe_line

    line = safe_line(text)
    longest = LONGEST["subject" if argument == "about" else argument]
    if len(line) > longest:
        raise ArgumentInvalid(f"the {argument} has {len(line)} characters; at most {longest} fit")
    if not line and not may_be_empty:
        raise ArgumentInvalid(f"the {argument} is empty; say in one sentence what is meant")
    return line
