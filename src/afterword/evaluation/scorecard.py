"""The scorecard: a Markdown table with a row for each measure and a column for each system. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from afterword.evaluation.measurement import Evaluation, Result
from afterword.evaluation.opinions import OpinionReport
from afterword.evaluation.scenarios.scenario import one_line
from afterword.evaluation.scorer import Share
from afterword.pipeline.errors import SourceInvalid

BEGIN, END = "<!-- scorecard -->", "<!-- end of scorecard -->"

LABELS = {
    "fact_recall": "fact recall",
    "current_recall": "current recall",
    "precision": "precision, of everything stored",
    "update_correct": "updates right, of those stored",
    "update_of_all": "updates right, of all",
    "retracted_gone": "“forget that” gone",
    "wrongly_retired": "wrongly retired",
    "kind_correct": "kind right",
    "valid_to_correct": "last day right",
    "evidence_ok": "evidence verbatim",
    "grounded_in_user": "a person's words among it",
    "not_facts_stored": "not-facts stored",
    "unmatched": "current facts that match no gold fact",
}
REASONS = {
    "assistant_suggestion": "an assistant's suggestion",
    "memory_echo": "an echo of memory",
    "roleplay": "role play",
    "third_party": "somebody else's",
    "tool_output": "tool output",
}


def scorecard(evaluation: Evaluation) -> str:
    """Return the scorecard, with a list of failures below it."""
    results = evaluation.results
    rows = [[label, *(cell(result) for result in results)] for label, cell in _rows(evaluation).items()]
    lines = [
        _heading(evaluation),
        "",
        *markdown_table(["", *(result.name for result in results)], rows),
        "",
        *_by_reason(results),
        *_origin(evaluation),
        *opinion_lines(evaluation.opinions),
        *_failed(results),
    ]
    return "\n".join(lines)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table whose columns are padded to equal width."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    ruled = [f"{'-' * max(3, width)}" for width in widths]
    return [
        "| " + " | ".join(cell.ljust(max(3, width)) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, ruled, *rows]
    ]


def share_text(share: Share) -> str:
    """Return a share as text, for example `43 of 49 (0.88)`."""
    return "-" if share.ratio is None else f"{share.n} of {share.of} ({share.ratio:.2f})"


def written_into(text: str, block: str, place: str) -> str:
    """Return the text, in which the block replaces what was between the two scorecard markers.

    Raises `SourceInvalid`, naming `place`, unless the text has each marker once and in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SourceInvalid(
            f"{place} needs one line {BEGIN!r} and below it one line {END!r}; put them where the scorecard belongs"
        )
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def opinion_lines(opinions: OpinionReport | None) -> list[str]:
    """Return a summary of the model's opinions on the unmatched facts, with a note that it is no measure."""
    if opinions is None:
        return []
    answers = opinions.all_opinions
    counts = {name: sum(getattr(opinion, name) for opinion in answers) for name in ("true", "durable", "useful")}
    counts["all three"] = sum(opinion.true and opinion.durable and opinion.useful for opinion in answers)
    head = f"The model's own opinion ({opinions.version}), no measure, of the {opinions.asked} unmatched facts:"
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    lines = ["", f"{head} {summary}; {opinions.asked - len(answers)} not answered."]
    return lines + [f"- FAILED: an opinion on {scenario}: {reason}" for scenario, reason in opinions.failures]


def _rows(evaluation: Evaluation) -> dict[str, Callable[[Result], str]]:
    estimated = " (estimated: characters by four)" if evaluation.recording else ""

    def cell_of(name: str) -> Callable[[Result], str]:
        return lambda result: share_text(result.total.shares[name])

    return {
        **{label: cell_of(name) for name, label in LABELS.items()},
        "current facts that repeat others": lambda result: f"{result.total.duplicates} of {result.total.current_facts}",
        "facts a session": lambda result: f"{result.per_session(result.total.facts):.1f}",
        "words a fact": lambda result: f"{result.total.words / result.total.facts:.0f}" if result.total.facts else "-",
        "model calls a session": lambda result: f"{result.per_session(result.usage.calls):.1f}",
        "repairs a session": lambda result: f"{result.per_session(result.trial.usage.repairs):.2f}",
        f"prompt tokens a session{estimated}": lambda result: f"{result.per_session(result.usage.prompt_tokens):.0f}",
        f"completion tokens a session{estimated}": (
            lambda result: f"{result.per_session(result.usage.completion_tokens):.0f}"
        ),
        "pairs left unjudged": lambda result: str(result.trial.unjudged),
        "sessions that failed": lambda result: f"{len(result.trial.failures)} of {result.total.sessions}",
    }


def _heading(evaluation: Evaluation) -> str:
    score = evaluation.results[0].total
    gold = [fact for scenario in evaluation.scenarios for fact in scenario.gold.facts]
    forgotten = sum(fact.status == "retracted" for fact in gold)
    order = {"file": "in the order of time", "arrival": "in their order of arrival"}
    came = order.get(evaluation.order, f"shuffled with seed {evaluation.seed}")
    return (
        f"{len(evaluation.scenarios)} scenarios, {score.sessions} sessions {came}, {len(gold)} gold facts "
        f"({forgotten} to be forgotten), {score.shares['not_facts_stored'].of} not-facts; "
        "each status as of the end of a scenario's last session."
    )


def _by_reason(results: Sequence[Result]) -> list[str]:
    lines = []
    for result in results:
        stored = {why: share for why, share in result.total.not_facts_by_why.items() if share.n}
        reasons = ", ".join(f"{REASONS.get(why, why)} {share.n} of {share.of}" for why, share in stored.items())
        lines.append(f"- Not-facts stored by {result.name}: {reasons or 'none'}.")
    return lines


def _origin(evaluation: Evaluation) -> list[str]:
    tested = evaluation.results[0].trial.system
    replies = f"; replies played back from {evaluation.recording}" if evaluation.recording else ""
    return [
        f"- {tested.name}: extracted by {tested.extractor.version}, judged by {tested.judge.version}{replies}.",
        "- offline rules: a small grammar of English clauses, for trying afterword out and for testing applications.",
    ]


def _failed(results: Sequence[Result]) -> list[str]:
    return [
        f"- FAILED in {result.name}: session {failure.session_id} of {scenario}: {one_line(failure.reason)}"
        for result in results
        for scenario, failure in result.trial.failures
    ]
