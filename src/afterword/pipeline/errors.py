"""Errors of the pipeline: one class for each reaction of the caller."""

from afterword.errors import AfterwordError


class PipelineError(AfterwordError):
    """The base of the errors of the pipeline. Follow the message, which says what to do next."""


class SourceInvalid(PipelineError):
    """A path, manifest or file holds no sessions in the expected form. Correct the path or the file."""

    is_usage = True


class ScopeBusy(PipelineError):
    """Other runs kept changing the scope while this session was judged. It stays queued: run again."""


class ProposalOutdated(PipelineError):
    """The session has grown, or the memory has changed what the proposal would do. Run the session for a new one."""


class BudgetReached(PipelineError):
    """The worst-case cost of the next request exceeds a budget, so it was not sent. Raise the budget or run later.

    The session is unchanged.
    """


class TimeReached(PipelineError):
    """The work on a session took longer than it may, so nothing of it is stored. Divide it, or allow more time."""


class PriceUnknown(PipelineError):
    """A budget in dollars is set for a model whose price is not known. Set its price, or a budget in tokens."""

    is_usage = True


class RhythmInvalid(PipelineError):
    """The interval of a job is neither seconds nor a cron expression. Correct the setting."""

    is_usage = True
