"""The methods of `ScopeMemory` that list, store and decide findings of agents, and set which findings are kept."""

from __future__ import annotations

from functools import partial

from sqlmodel import Session

from afterword.client.arguments import EVERY_STATUS, Instant, NameOrNames, chosen_members, instant
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
    ToolFindingPolicy,
)
from afterword.store.findings import stored_findings
from afterword.store.findings.stored_findings import SavedFinding, save_finding


class ScopeFindings(ScopeReading):
    """Reads and changes findings of agents. Use it through `ScopeMemory`."""

    async def findings(
        self,
        *,
        status: NameOrNames | None = None,
        agent: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
    ) -> FindingPage:
        """Return the findings of agents, newest first. No person said them, and no fact rests on them.

        `status` is one or several of current, waiting, dropped and expired, or "all"; by default current and waiting.
        `as_of` is the time at which the status applies, by default now. With `known_at`, the findings are those that
        the store would have returned at that time. Raises `ArgumentInvalid`.
        """
        at = self._resources.now() if as_of is None else instant(as_of)
        believed_at = None if known_at is None else instant(known_at)
        wanted = frozenset({FindingStatus.CURRENT, FindingStatus.WAITING})
        if status is not None:
            wanted = (
                frozenset(FindingStatus) if status == EVERY_STATUS else chosen_members(FindingStatus, status, "status")
            )
        findings = await self._resources.read(
            lambda transaction: stored_findings.read_findings(transaction, self.scope, believed_at)
        )
        fitting = [finding for finding in findings if agent is None or finding.agent == agent]
        chosen = tuple(finding for finding in fitting if finding.status_at(at) in wanted)
        return FindingPage(chosen, len(fitting) - len(chosen), at)

    async def finding_history(self, finding_id: str) -> FindingOrigin:
        """Return a finding, and each time that an agent stated it, with its words and runs. Raises `NotFound`."""

        def work(transaction: Session) -> FindingOrigin:
            finding = stored_findings.read_finding(transaction, self.scope, finding_id)
            sayings = stored_findings.read_sayings(transaction, self.scope, finding)
            return FindingOrigin(finding, tuple((saying, tuple(run_ids)) for saying, run_ids in sayings))

        return await self._resources.read(work)

    async def save_finding(
        self, statement: str, *, agent: str, topic: str, after_tools: bool = False, is_from_notes: bool = False
    ) -> SavedFinding:
        """Store a finding of an agent if the scope keeps findings of this agent. Return whether it was stored.

        `after_tools` says that the agent has used tools before, which may have told it what to save. The finding then
        waits for a person, unless the scope also keeps such findings. `is_from_notes` says that the agent may only
        repeat what the memory told it. An existing finding is then not extended. Raises `ArgumentInvalid`.
        """
        statement, topic = " ".join(statement.split()), " ".join(topic.split())
        longest_of = {"statement": LONGEST_STATEMENT, "topic": LONGEST_TOPIC}
        for name, text in (("statement", statement), ("topic", topic)):
            if not 0 < len(text) <= longest_of[name]:
                raise ArgumentInvalid(f"the {name} has {len(text)} characters; give 1 to {longest_of[name]}")
        return await save_finding(
            await self._resources.store(),
            self.scope,
            agent=agent,
            statement=statement,
            topic=topic,
            at=self._resources.now(),
            after_tools=after_tools,
            is_from_notes=is_from_notes,
        )

    async def approve_finding(self, finding_id: str) -> AgentFinding:
        """Approve a waiting or dropped finding on behalf of a person, and return it. Raises `NotFound`."""
        return await self._decide_finding(finding_id, FindingReview.APPROVED)

    async def drop_finding(self, finding_id: str) -> AgentFinding:
        """Hide a finding from agents on behalf of a person, and return it. Raises `NotFound`.

        It stays hidden even if an agent finds it again. `approve_finding` reverses this, and `forget(finding=...)`
        erases the finding.
        """
        return await self._decide_finding(finding_id, FindingReview.DROPPED)

    async def _decide_finding(self, finding_id: str, review: FindingReview) -> AgentFinding:
        return await self._resources.write(
            lambda transaction: stored_findings.decide_finding(transaction, self.scope, finding_id, review)
        )

    async def finding_policy(self) -> FindingPolicy:
        """Return which agents' findings the scope keeps. By default it keeps none."""
        privacy = (await self._resources.store()).privacy
        return await self._resources.read(
            lambda transaction: stored_findings.finding_policy_of(transaction, self.scope, privacy)
        )

    async def set_finding_policy(
        self,
        agents: NameOrNames | None = None,
        *,
        agents_with_tools: ToolFindingPolicy | str | None = None,
        advice: bool | None = None,
        days: float | None = None,
    ) -> FindingPolicy:
        """Set which agents' findings the scope keeps from now on, and return the whole policy.

        An argument that is None leaves its part of the policy unchanged. `agents` are names of agents, or "*" for all
        agents. If it is empty, no findings are stored, and agents are told none. `agents_with_tools` is "review" or
        "keep": whether findings of agents that have used tools wait for a person. With `advice`, the advice of agents
        is kept, too. A finding expires after `days` (at most 36,500). Raises `ArgumentInvalid`.
        """
        before = await self.finding_policy()
        names = before.agents if agents is None else _unique_names(agents)
        if not all(name.strip() for name in names):
            raise ArgumentInvalid("the name of an agent is empty")
        if days is not None and not 0 < days <= MOST_DAYS:
            raise ArgumentInvalid(f"days={days} must be greater than 0 and at most {MOST_DAYS:,}")
        with_tools = before.agents_with_tools
        if agents_with_tools is not None:
            (with_tools,) = chosen_members(ToolFindingPolicy, agents_with_tools, "agents_with_tools")
        policy = FindingPolicy(
            names, with_tools, before.advice if advice is None else advice, before.days if days is None else days
        )
        await self._resources.write(partial(stored_findings.set_finding_policy, scope=self.scope, policy=policy))
        return policy

    async def tells_other_people(self) -> bool:
        """Return whether agents are told the words of people who are not the owner of the scope."""
        privacy = (await self._resources.store()).privacy
        return await self._resources.read(
            lambda transaction: stored_findings.tells_words_of_others(transaction, self.scope, privacy)
        )

    async def set_other_people(self, *, are_told: bool) -> bool:
        """Set whether agents are told the words of people who are not the owner of the scope. Return the new value."""
        await self._resources.write(
            partial(stored_findings.set_telling_words_of_others, scope=self.scope, are_told=are_told)
        )
        return are_told


def _unique_names(names: NameOrNames) -> tuple[str, ...]:
    return tuple(dict.fromkeys([names] if isinstance(names, str) else names))
