"""The settings of webhooks."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class WebhookOptions(BaseModel):
    """How posts to webhooks are sent: only by https to the public internet, unless more is allowed."""

    model_config = ConfigDict(extra="forbid")

    allow_loopback: bool = Field(default=False, description="webhooks may be on this machine")
    allow_private: bool = Field(default=False, description="webhooks may be in private networks")
    timeout_s: float = Field(default=10.0, gt=0, description="how long one post may take")
    tries: int = Field(default=8, ge=1, description="how often a post is tried in all")
    first_pause_s: float = Field(default=60.0, gt=0, description="the pause before the second try")
    longest_pause_s: float = Field(default=6 * 3600.0, gt=0, description="the pauses grow up to this one")
