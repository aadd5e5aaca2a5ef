"""The settings for findings of agents, as the profile and the environment hold them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from afterword.facts.findings import DAYS, FindingPolicy, WithTools


class FindingsOptions(BaseModel):
    """Whose findings are kept in memories that do not say so themselves: those of `agents`, with "*" of all agents.

    With `advice` also what these agents advised. `agents_with_tools` says what happens to a finding of an agent that
    used tools before: "review" (a person approves it) or "keep". A finding expires after `days` unless it is found
    again.
    """

    model_config = ConfigDict(extra="forbid")

    agents: list[str] = []
    agents_with_tools: WithTools = WithTools.REVIEW
    advice: bool = False
    days: float = Field(default=DAYS, gt=0)

    def policy(self) -> FindingPolicy:
        """Return the policy that the store takes."""
        return FindingPolicy(tuple(self.agents), self.agents_with_tools, self.advice, self.days)
