"""Errors of the pipeline. Each class asks for a different reaction of the caller."""

from afterword.errors import AfterwordError


class PipelineError(AfterwordError):
    """The base of the errors of the pipeline. Follow the message, which says what to do next."""


class SourceInvalid(PipelineError):
    """A path, manifest or file holds no sessions in the expected form. Correct the path or the file."""

    is_usage = True


class ScopeBusy(PipelineError):
    """Other processes kept changing the scope while a run was judged, so it was not stored. Run it again."""


class ProposalOutdated(PipelineError):
    """The session has grown, or the proposal would have another effect now. Process the session for a new proposal."""


class BudgetReached(PipelineError):
    """The worst-case cost of the next request exceeds a budget, so it was not sent. Raise the budget or run later.

    The session is unchanged.
    """


class TimeReached(PipelineError):
    """Processing a session exceeded its time limit, so nothing was stored. Split the session, or raise the limit."""


class PriceUnknown(PipelineError):
    """A budget in dollars is set for a model whose price is not known. Set its price, or a budget in tokens."""

    is_usage = True
