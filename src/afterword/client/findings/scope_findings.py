"""What agents found in one scope: listing it, deciding about it, and the settings for it."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from sqlmodel import Session

from afterword.client.arguments import EVERY_STATUS, Instant, Several, choices, instant
from afterword.client.results import FindingOrigin, FindingPage
from afterword.client.scope_reading import ScopeReading
from afterword.errors import ArgumentInvalid
from afterword.facts.findings import (
    LONGEST_STATEMENT,
    LONGEST_TOPIC,
    MOST_DAYS,
    AgentFinding,
    FindingPolicy,
    FindingReview,
    FindingStatus,
    WithTools,
)
from afterword.store.findings import stored_findings
from afterword.store.findings.stored_findings import SavedFinding, save_finding


class ScopeFindings(ScopeReading):
    """What can be read and changed of agents' findings. Use it through `ScopeMemory`."""

    async def findings(
        self,
        *,
        status: Several | None = None,
        agent: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
    ) -> FindingPage:
        """Return what agents found, the newest first; no person said it, and no fact rests on it.

        `status` is one or several of current, waiting, dropped and expired, or "all"; by default current and waiting.
        `known_at` asks for what was known then. Raises `ArgumentInvalid`.
        """
        at = self._now() if as_of is None else instant(as_of)
        believed_at = None if known_at is None else instant(known_at)
        wanted = frozenset({FindingStatus.CURRENT, FindingStatus.WAITING})
        if status is not None:
            wanted = frozenset(FindingStatus) if status == EVERY_STATUS else choices(FindingStatus, status, "status")
        findings = await self._read(
            lambda transaction: stored_findings.read_findings(transaction, self.scope, believed_at)
        )
        fitting = [finding for finding in findings if agent is None or finding.agent == agent]
        chosen = tuple(finding for finding in fitting if finding.status_at(at) in wanted)
        return FindingPage(chosen, len(fitting) - len(chosen), at)

    async def finding_history(self, finding_id: str) -> FindingOrigin:
        """Return every saying of a finding, with the agent's words and the runs that have it. Raises `NotFound`."""

        def work(transaction: Session) -> FindingOrigin:
            finding = stored_findings.read_finding(transaction, self.scope, finding_id)
            sayings = stored_findings.read_sayings(transaction, self.scope, finding)
            return FindingOrigin(finding, tuple((saying, tuple(run_ids)) for saying, run_ids in sayings))

        return await self._read(work)

    async def save_finding(
        self, statement: str, *, agent: str, topic: str, after_tools: bool = False, is_from_notes: bool = False
    ) -> SavedFinding:
        """Store what an agent found, if the scope keeps findings of this agent; return what became of it.

        With `after_tools` it waits for a person, unless the scope keeps such findings. With `is_from_notes` the agent
        may have it from the memory itself: a finding that is there already does not last longer. Raises
        `ArgumentInvalid`.
        """
        statement, topic = " ".join(statement.split()), " ".join(topic.split())
        longest_of = {"statement": LONGEST_STATEMENT, "topic": LONGEST_TOPIC}
        for name, text in (("statement", statement), ("topic", topic)):
            if not 0 < len(text) <= longest_of[name]:
                raise ArgumentInvalid(f"the {name} has {len(text)} characters; give 1 to {longest_of[name]}")
        return await save_finding(
            await self._store(),
            self.scope,
            agent=agent,
            statement=statement,
            topic=topic,
            at=self._now(),
            after_tools=after_tools,
            is_from_notes=is_from_notes,
        )

    async def approve_finding(self, finding_id: str) -> AgentFinding:
        """Let a finding count that waits or was dropped, on behalf of a person, and return it. Raises `NotFound`."""
        return await self._decide_finding(finding_id, FindingReview.APPROVED)

    async def drop_finding(self, finding_id: str) -> AgentFinding:
        """Tell no agent a finding any more, also if it is found again, and return it. Raises `NotFound`.

        Nothing is erased: `approve_finding` keeps it after all, and `forget(finding=...)` erases.
        """
        return await self._decide_finding(finding_id, FindingReview.DROPPED)

    async def _decide_finding(self, finding_id: str, review: FindingReview) -> AgentFinding:
        return await self._write(
            lambda transaction: stored_findings.decide_finding(transaction, self.scope, finding_id, review)
        )

    async def finding_policy(self) -> FindingPolicy:
        """Return whose findings the scope keeps: of no agent unless it was set here or in the settings."""
        privacy = (await self._store()).privacy
        return await self._read(lambda transaction: stored_findings.finding_policy_of(transaction, self.scope, privacy))

    async def set_finding_policy(
        self,
        agents: Collection[str] | str | None = None,
        *,
        agents_with_tools: WithTools | str | None = None,
        advice: bool | None = None,
        days: float | None = None,
    ) -> FindingPolicy:
        """Set whose findings the scope keeps from now on, and return all of it. What is left out stays as it was.

        `agents` are names of agents, with "*" all of them, empty for none: then no findings are kept and none are told.
        `agents_with_tools` says what happens to findings of agents that used tools: "review" or "keep". With `advice`
        also what they advised is kept. A finding expires after `days`, at most 36,500. Raises `ArgumentInvalid`.
        """
        before = await self.finding_policy()
        names, mode = before.agents, before.agents_with_tools
        if agents is not None:
            names = tuple(dict.fromkeys([agents] if isinstance(agents, str) else agents))
        if not all(name.strip() for name in names):
            raise ArgumentInvalid("the name of an agent is empty")
        if days is not None and not 0 < days <= MOST_DAYS:
            raise ArgumentInvalid(f"days={days} is no number above 0 and at most {MOST_DAYS:,}")
        if agents_with_tools is not None:
            (mode,) = choices(WithTools, agents_with_tools, "agents_with_tools")
        policy = FindingPolicy(
            names, mode, before.advice if advice is None else advice, before.days if days is None else days
        )
        await self._write(partial(stored_findings.set_finding_policy, scope=self.scope, policy=policy))
        return policy

    async def tells_other_people(self) -> bool:
        """Return whether agents are told the words of people who are not the owner of the scope."""
        privacy = (await self._store()).privacy
        return await self._read(
            lambda transaction: stored_findings.tells_other_people(transaction, self.scope, privacy)
        )

    async def set_other_people(self, *, are_told: bool) -> bool:
        """Set whether agents are told the words of people who are not the owner of the scope, and return it."""
        await self._write(partial(stored_findings.set_other_people, scope=self.scope, are_told=are_told))
        return are_told
