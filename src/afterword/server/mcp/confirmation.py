"""Questions to the person, which a client shows in a form: whether a request is right, and whether to erase."""

from __future__ import annotations

from mcp.server.mcpserver import AcceptedElicitation, DeclinedElicitation, ElicitationResult
from pydantic import BaseModel, Field

from afterword.client.values import RequestOutcome, RequestStatus
from afterword.server.mcp.server import CallerContext


class PersonAnswer(BaseModel):
    """What is known of the person's answer before a tool runs."""


class ApprovalForm(PersonAnswer):
    """The form that asks whether a request is right."""

    agree: bool = Field(default=True, title="Agree", description="The memory keeps this.")


class ErasureForm(PersonAnswer):
    """The form that asks whether to erase."""

    erase: bool = Field(default=False, title="Erase for good", description="It cannot be undone.")


class NotAsked(PersonAnswer):
    """The person was not asked: nothing waits for an answer, or the client cannot ask."""

    outcome: RequestOutcome


def can_ask(context: CallerContext) -> bool:
    """Return whether the client can show a form to the person."""
    capabilities = context.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def is_open(outcome: RequestOutcome) -> bool:
    """Return whether the person may decide a request in a form. A command to an assistant is left to a review."""
    waits = outcome.answer in (RequestStatus.HELD, RequestStatus.WAITING) and outcome.run_id is not None
    return waits and not outcome.is_command


def approval_of(answer: ElicitationResult[PersonAnswer]) -> bool | None:
    """Return whether the person has agreed, None if there is no answer."""
    if isinstance(answer, AcceptedElicitation):
        if isinstance(answer.data, ApprovalForm):
            return answer.data.agree
        return answer.data.erase if isinstance(answer.data, ErasureForm) else None
    return False if isinstance(answer, DeclinedElicitation) else None
