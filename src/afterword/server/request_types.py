"""Models of request bodies, and types of common parameters. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LONGEST_TEXT, LONGEST_NAME = 10_000, 255
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, pattern=r"^[^\x00]*$")]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00]*$")]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]], Field(max_length=50)]
Moment = Annotated[str, Field(max_length=40, examples=["2026-03-01", "2026-03-01T18:00:00Z"])]

Limit = Annotated[int, Query(ge=1, le=500, description="How many entries a page has.")]
Cursor = Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")]
QueryMoment = Annotated[str | None, Query(max_length=40, examples=["2026-03-01"])]
QueryList = Annotated[list[str] | None, Query(max_length=20)]


class Body(BaseModel):
    """The base of all bodies of requests: unknown fields are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class RememberBody(Body):
    """A text to remember."""

    content: Text = Field(examples=["The user lives in Oslo."])
    tags: Tags = Field(default=[], examples=[["home"]])


class FactBody(Body):
    """A sentence to remember, with what it is about."""

    statement: Text = Field(examples=["The user lives in Oslo."])
    kind: Literal["preference", "entity", "decision"] = "entity"
    subject: Name = Field(default="user", description='Whom it is about; "user" is the owner of the memory.')
    attribute: Name = "note"
    value: Text | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    tags: Tags = []


class EditBody(Body):
    """The corrected parts of a fact: at least one of `statement`, `value` and `about`."""

    statement: Text | None = Field(default=None, examples=["I live in Bergen."])
    value: Text | None = None
    about: Name | None = None
    changed: bool = Field(
        default=False, description="True if the fact held until now. By default it was wrong from the start."
    )


class FlagBody(Body):
    """Whether an agent must never miss a fact."""

    flagged: bool = True


def _usable_session_id(name: str) -> str:
    if not name.strip():
        raise ValueError("the id of a session is empty; give each conversation an id of its own")
    if name in (".", ".."):
        raise ValueError("a session cannot be called . or .., because clients remove these from a path")
    return name


class SessionBody(Body):
    """A saved state of a conversation, in any form that afterword reads."""

    session_id: Annotated[Name, AfterValidator(_usable_session_id)] = Field(examples=["monday"])
    state: dict[str, Any] | list[Any] = Field(
        examples=[
            {
                "type": "AssistantAgentState",
                "llm_context": {"messages": [{"content": "I live in Oslo.", "source": "user", "type": "UserMessage"}]},
            }
        ]
    )
    humans: list[Name] = Field(default=[], max_length=100, description="Names of speakers who are people.")
    started_at: Moment | None = None
    queue: bool = Field(default=False, description="Answer at once with 202 and a job to poll, and process later.")


class DecisionBody(Body):
    """A person's decision on an item of the review."""

    decision: Literal["approve", "reject", "keep-both"]


class ForgetBody(Body):
    """What is forgotten: exactly one of `fact`, `finding`, `session`, `before`, `everything` and `asked`."""

    fact: Name | None = None
    finding: Name | None = None
    session: Name | None = None
    before: Moment | None = None
    everything: bool = False
    asked: bool = Field(default=False, description="What people have asked to be forgotten.")

    def target(self) -> dict[str, Any]:
        """Return the arguments of `ScopeMemory.forget`."""
        return {name: getattr(self, name) for name in ForgetBody.model_fields}


class ConfirmedForgetBody(ForgetBody):
    """What is forgotten, with the confirmation that its preview gave."""

    confirmation: Annotated[str, Field(max_length=200)]


class RetryBody(Body):
    """Which failed sessions are queued again: all of the tenant, or those of a scope, or one of them."""

    scope: Annotated[str, Field(max_length=600)] | None = None
    session_id: Name | None = None


class WebhookBody(Body):
    """The URL to which posts are sent, and the events to send. Without `events`, all are sent."""

    url: Annotated[str, Field(min_length=1, max_length=2000, examples=["https://hooks.example/afterword"])]
    events: list[Literal["session set aside", "budget reached", "review waits", "job failed"]] = []


class ProblemDetails(BaseModel):
    """What is wrong (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None
