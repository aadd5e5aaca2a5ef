"""The memory of one scope with the rights of an agent: it reads cleaned texts, and requests changes.

A cleaned text is one line. Its invisible characters are removed. Look-alike letters inside Latin words are replaced by
Latin letters, and the brackets of a memory block's tags by other signs, so that the text cannot open or close a block.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from afterword.client.arguments import (
    NameOrNames,
    check_limit,
    checked_new_tags,
    chosen_members,
    fact_cursor,
    fact_filter,
    page_after_cursor,
)
from afterword.client.results import ContextBlock, FactOrigin, FactPage, SearchHit, SearchResults, SessionPage
from afterword.client.type_checks import TypeCheckedMethods
from afterword.errors import ArgumentInvalid, NotFound
from afterword.extractors.candidate_texts import LONGEST_BY_FIELD
from afterword.extractors.slot_relation import relation_by_slot
from afterword.facts.assertions import OWNER, Assertion, Kind
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.transcripts import SourceTurn, is_generic_name
from afterword.facts.words import folded, snake_case
from afterword.privacy.prompt_injection import commands_assistant
from afterword.recall.block import safe_line
from afterword.store import agent_requests
from afterword.store.agent_requests import RequestOutcome
from afterword.store.entered_statements import Entry
from afterword.store.findings.stored_findings import SavedFinding
from afterword.store.forgetting.erasure import Receipt
from afterword.store.proposals import RunEffect
from afterword.store.reading.told_memory import read_told_facts, read_told_findings, read_told_turns
from afterword.store.reviews import Decision
from afterword.store.sessions import SavedSession

if TYPE_CHECKING:
    from afterword.client.resources import Resources
    from afterword.client.scope_memory import ScopeMemory


T = TypeVar("T")

_TEXTS = ("subject", "attribute", "value", "statement", "limited_to", "outcome", "former_name")


def _cleaned_texts(said: Fact | Assertion) -> dict[str, Any]:
    """Return the cleaned texts that a fact and an assertion both have, by name of the field.

    A quote that reads like a command to an assistant becomes empty.
    """
    texts: dict[str, Any] = {name: _cleaned_text(getattr(said, name)) for name in _TEXTS}
    evidence = (
        replace(
            source,
            quote="" if commands_assistant(source.quote) else safe_line(source.quote),
            speaker=_cleaned_text(source.speaker),
        )
        for source in said.evidence
    )
    return {**texts, "evidence": tuple(evidence), "tags": tuple(map(safe_line, said.tags))}


def cleaned_fact(fact: Fact) -> Fact:
    """Return a fact with cleaned texts."""
    exceptions = tuple(map(cleaned_fact, fact.exceptions))
    return replace(fact, **_cleaned_texts(fact), former=_cleaned_text(fact.former), exceptions=exceptions)


def cleaned_assertion(assertion: Assertion) -> Assertion:
    """Return an assertion with cleaned texts."""
    return replace(assertion, **_cleaned_texts(assertion), speaker=_cleaned_text(assertion.speaker))


def cleaned_finding(finding: AgentFinding) -> AgentFinding:
    """Return a finding with cleaned texts and without its quotes."""
    return replace(
        finding,
        agent=safe_line(finding.agent),
        topic=safe_line(finding.topic),
        statement=safe_line(finding.statement),
        source=_cleaned_text(finding.source),
        evidence=(),
    )


def cleaned_turn(turn: SourceTurn) -> SourceTurn:
    """Return a turn with cleaned words."""
    return replace(turn, speaker=safe_line(turn.speaker), text=safe_line(turn.text))


def cleaned_hit(hit: SearchHit) -> SearchHit:
    """Return a search hit with cleaned texts."""
    return replace(
        hit,
        fact=cleaned_fact(hit.fact) if hit.fact is not None else None,
        turn=cleaned_turn(hit.turn) if hit.turn is not None else None,
        finding=cleaned_finding(hit.finding) if hit.finding is not None else None,
    )


def _cleaned_text(text: str | None) -> str | None:
    return None if text is None else safe_line(text)


@dataclass(frozen=True, slots=True)
class ToldSession:
    """A session as an agent may see it: some of its turns, and the facts that rest on it.

    `left_out` counts the turns that are not shown: turns of other people, agents and tools, pasted texts, texts that
    read like commands to an assistant, and turns that mention something that was withdrawn or replaced.
    """

    session: SavedSession
    turns: tuple[SourceTurn, ...]
    facts: tuple[Fact, ...]
    left_out: int


class AgentAccess(TypeCheckedMethods):
    """The memory of one scope with the rights of an agent, as `ScopeMemory.for_agent` returns it.

    An agent reads facts that hold or held before, in the cleaned form that the memory block has. What it asks to
    remember, correct or withdraw waits for a person, since a web page may have told the agent to ask for it.
    Reading never creates a scope. Every method raises `StoreError` if the store does not answer.
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
        status: NameOrNames | None = None,
        kind: NameOrNames | None = None,
        about: str | None = None,
        tags: NameOrNames = (),
        limit: int | None = None,
        after: str | None = None,
    ) -> FactPage:
        """Return the facts that agents may be told, in the order in which they were said.

        The arguments are those of `ScopeMemory.facts`. Raises `ArgumentInvalid`.
        """
        wanted = fact_filter(status, kind, about, tags)
        fitting = [
            fact for fact in sorted(await self._told_facts(), key=fact_cursor) if wanted.accepts_apart_from_status(fact)
        ]
        chosen = [fact for fact in fitting if wanted.accepts_status(fact)]
        shown, next_cursor = page_after_cursor(chosen, fact_cursor, limit=limit, after=after)
        return FactPage(tuple(map(cleaned_fact, shown)), len(chosen), len(fitting) - len(chosen), next_cursor)

    async def fact(self, fact_id: str) -> Fact:
        """Return a fact by its id, or by the first digits of its id (at least 6).

        Raises `NotFound` if there is no such fact, or if agents may not be told it.
        """
        return cleaned_fact(await self._told_fact(fact_id))

    async def history(self, fact_id: str) -> FactOrigin:
        """Return where a fact comes from: its assertions, and the verdicts on them.

        Verdicts that involve a fact that agents may not be told are left out. Raises `NotFound` as `fact` does.
        """
        fact = await self._told_fact(fact_id)
        told_ids = {name for each in await self._told_facts() for name in each.assertion_ids}
        origin = await self._memory.history(fact.id)
        verdicts = tuple(
            replace(recorded, earlier=cleaned_assertion(recorded.earlier), later=cleaned_assertion(recorded.later))
            for recorded in origin.verdicts
            if {recorded.earlier.id, recorded.later.id} <= told_ids
        )
        return FactOrigin(cleaned_fact(fact), tuple(map(cleaned_assertion, origin.assertions)), verdicts)

    async def search(
        self, query: str, *, limit: int | None = 10, kind: NameOrNames | None = None, tags: NameOrNames = ()
    ) -> SearchResults:
        """Return what matches a query, as `ScopeMemory.search` does. Raises `ArgumentInvalid`.

        If the scope has no more facts than `limit`, the facts that do not match follow with the score 0.
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
        """Return the memory block for a query, as `ScopeMemory.context` does. Raises `ArgumentInvalid`."""
        return await self._memory.context(query, budget_tokens=budget_tokens, most_left_out=most_left_out)

    async def sessions(self, *, limit: int | None = None, after: str | None = None) -> SessionPage:
        """Return the sessions of the scope, oldest first. Raises `ArgumentInvalid`."""
        return await self._memory.sessions(limit=limit, after=after)

    async def session(self, session_id: str) -> ToldSession:
        """Return what agents may see of a session. Raises `NotFound` if the scope has no such session."""
        details = await self._memory.session(session_id)
        turns = await self._call(read_told_turns, session_id)
        facts = [
            cleaned_fact(fact)
            for fact in await self._told_facts()
            if any(evidence.session_id == session_id for evidence in fact.evidence)
        ]
        left_out = len(details.turns) - len(turns)
        return ToldSession(details.session, tuple(map(cleaned_turn, turns)), tuple(facts), left_out)

    async def findings(self, *, agent: str | None = None, limit: int | None = None) -> tuple[AgentFinding, ...]:
        """Return the findings of agents that other agents are told, newest first. No person said them.

        Raises `ArgumentInvalid` for a limit below 1.
        """
        check_limit(limit)
        findings = await self._call(read_told_findings)
        return tuple(cleaned_finding(each) for each in findings if agent is None or each.agent == agent)[:limit]

    async def save_finding(self, statement: str, *, agent: str, topic: str) -> SavedFinding:
        """Store a finding of an agent if the scope keeps findings of this agent. Return whether it was stored.

        What the agent has read is not known here. So the finding is treated as one that may come from the output of
        tools or from the memory itself. Raises `ArgumentInvalid`. See `ScopeMemory.save_finding`.
        """
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
        tags: NameOrNames = (),
    ) -> RequestOutcome:
        """Request that a sentence is remembered, and return the status of the request. A person decides by `decide`.

        `about` is the person or thing that the sentence is about, by default the owner of the memory. If the same
        sentence is known already, the status is `DONE`, and there is no run. Raises `ArgumentInvalid`.
        """
        statement = checked_agent_argument("statement", statement)
        (known_kind,) = chosen_members(Kind, kind, "kind")
        if any(fact.is_served and folded(fact.statement) == folded(statement) for fact in await self._told_facts()):
            return RequestOutcome(agent_requests.RequestStatus.DONE)
        entry = Entry(
            statement,
            known_kind,
            self._subject(about),
            snake_case(checked_agent_argument("attribute", attribute, may_be_empty=True)) or "note",
            checked_agent_argument("value", value, may_be_empty=True) or None,
            tags=checked_new_tags(tags),
        )
        return await self._call(agent_requests.request_statement, entry, quote=None, relate=relation_by_slot)

    def _subject(self, about: str) -> str:
        """Return the subject of a fact about this person or thing: `OWNER` if the owner of the memory is meant."""
        name = checked_agent_argument("about", about, may_be_empty=True)
        is_own_name = self.scope.kind is ScopeKind.USER and folded(name) == folded(self.scope.id)
        return OWNER if not name or is_generic_name(name) or is_own_name else name

    async def correct(self, fact_id: str, statement: str, *, value: str = "", changed: bool = False) -> RequestOutcome:
        """Request that another sentence replaces a fact, and return the status of the request.

        By default the old fact was never true. With `changed`, it was true until now. Raises `NotFound` and
        `ArgumentInvalid`.
        """
        fact = await self._told_fact(fact_id)
        entry = Entry(
            checked_agent_argument("statement", statement),
            fact.kind,
            fact.subject,
            fact.attribute,
            checked_agent_argument("value", value, may_be_empty=True) or None,
            tags=fact.tags,
        )
        return await self._call(agent_requests.request_correction, fact, entry, is_change=changed)

    async def withdraw(self, fact_id: str) -> RequestOutcome:
        """Request that a fact is withdrawn, and return the status of the request. Raises `NotFound`."""
        return await self._call(agent_requests.request_withdrawal, await self._told_fact(fact_id), quote=None)

    async def decide(self, outcome: RequestOutcome, *, approved: bool) -> RunEffect:
        """Carry out a person's answer to a request. Raises `StateConflict` if the request no longer waits."""
        decision = Decision.APPROVE if approved else Decision.REJECT
        return await self._memory.decide(f"run:{outcome.run_id}", decision)

    async def preview_forget(self, *, fact: str | None = None, session: str | None = None) -> Receipt | None:
        """Return how much `forget` would erase. Raises `NotFound` and `ArgumentInvalid`."""
        return await self._memory.preview_forget(fact=fact, session=session)

    async def forget(self, *, fact: str | None = None, session: str | None = None) -> Receipt | None:
        """Erase a fact or a session permanently. Ask a person for permission before you call this.

        Raises `NotFound` and `ArgumentInvalid`.
        """
        return await self._memory.forget(fact=fact, session=session)

    async def _call(self, work: Callable[..., Awaitable[T]], *arguments: Any, **options: Any) -> T:
        """Call `work` with the store, the scope, these arguments and the present time, and return its result."""
        store, at = await self._resources.store(), self._resources.now.change_time()
        return await work(store, self.scope, *arguments, at=at, **options)

    async def _told_facts(self) -> tuple[Fact, ...]:
        return await self._call(read_told_facts)

    async def _told_fact(self, fact_id: str) -> Fact:
        known = await self._memory.fact(fact_id)
        told_fact = next((fact for fact in await self._told_facts() if fact.id == known.id), None)
        if told_fact is None:
            raise NotFound(f"agents may not be told fact {fact_id!r}: it was withdrawn, or waits for a person")
        return told_fact


def checked_agent_argument(argument: str, text: str, *, may_be_empty: bool = False) -> str:
    """Return an argument of an agent as one line. Raises `ArgumentInvalid` if it is too long or must not be empty."""
    line = safe_line(text)
    longest = LONGEST_BY_FIELD["subject" if argument == "about" else argument]
    if len(line) > longest:
        raise ArgumentInvalid(f"the {argument} has {len(line)} characters; at most {longest} are allowed")
    if not line and not may_be_empty:
        raise ArgumentInvalid(f"the {argument} is empty; write one sentence")
    return line
