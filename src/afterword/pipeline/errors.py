"""What can go wrong in the pipeline, one leaf for each reaction of the caller."""

from afterword.errors import AfterwordError


class PipelineError(AfterwordError):
    """Something about what the pipeline was asked to process; the message says what to do."""


class SourceInvalid(PipelineError):
    """A path, manifest or layout that holds no sessions as they are looked for."""

    is_usage = True


class ScopeBusy(PipelineError):
    """Others kept changing the scope while this session was judged; it stays queued, run again."""


class ProposalOutdated(PipelineError):
    """The session of a proposal has been read further since; a new run says all of it."""


class BudgetReached(PipelineError):
    """The next question to the model could pass a budget, so it was not asked; the session stays as it was."""


class PriceUnknown(PipelineError):
    """A budget in dollars was set for a model whose price is not known."""

    is_usage = True


class RhythmInvalid(PipelineError):
    """What says how often a job is due is neither seconds nor a cron expression."""

    is_usage = True
