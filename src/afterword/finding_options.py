"""The settings for findings of agents, as the profile and the environment hold them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from afterword.facts.findings import DAYS, FindingPolicy, WithTools


class FindingsOptions(BaseModel):
    """Whose findings are kept in memories that do not say so themselves."""

    model_config = ConfigDict(extra="forbid")

    agents: list[str] = Field(default=[], description='the agents whose findings are kept; "*" is all')
    agents_with_tools: WithTools = Field(
        default=WithTools.REVIEW,
        description='a finding after tool output waits for a person ("review"), or counts at once ("keep")',
    )
    advice: bool = Field(default=False, description="keep also what these agents advised")
    days: float = Field(default=DAYS, gt=0, description="a finding expires after so many days unless it is found again")

    def policy(self) -> FindingPolicy:
        """Return the policy that the store takes."""
        return FindingPolicy(tuple(self.agents), self.agents_with_tools, self.advice, self.days)
