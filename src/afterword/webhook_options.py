"""The settings of webhooks."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class WebhookOptions(BaseModel):
    """How posts to webhooks are sent: only by https to the public internet, unless more is allowed.

    A post that fails is tried `tries` times, with pauses that grow from `first_pause_s` to `longest_pause_s`.
    """

    model_config = ConfigDict(extra="forbid")

    allow_loopback: bool = False
    allow_private: bool = False
    timeout_s: float = Field(default=10.0, gt=0)
    tries: int = Field(default=8, ge=1)
    first_pause_s: float = Field(default=60.0, gt=0)
    longest_pause_s: float = Field(default=6 * 3600.0, gt=0)
