"""The scorecard: measures down, systems across, as Markdown that also reads well in a terminal. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from afterword.evaluation.opinions import Opinions
from afterword.evaluation.results import Evaluation, Result
from afterword.evaluation.scores import Share
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
    """Return the scorecard, with what failed under it."""
    results = evaluation.results
    rows = [[label, *(cell(result) for result in results)] for label, cell in _rows(evaluation).items()]
    lines = [
        _heading(evaluation),
        "",
        *table(["", *(result.name for result in results)], rows),
        "",
        *_by_reason(results),
        *_origin(evaluation),
        *opinion_lines(evaluation.opinions),
        *_failed(results),
    ]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table, padded so that its columns line up."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    ruled = [f"{'-' * max(3, width)}" for width in widths]
    return [
        "| " + " | ".join(cell.ljust(max(3, width)) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, ruled, *rows]
    ]


def share_text(share: Share) -> str:
    """Return a share for people, for example `43 of 49 (0.88)`."""
    return "-" if share.ratio is None else f"{share.n} of {share.of} ({share.ratio:.2f})"


def written_into(text: str, block: str, place: str) -> str:
    """Return a text with what stands between its two scorecard markers replaced by the block.

    Raises `SourceInvalid`, naming `place`, where the markers do not stand in it once each, in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SourceInvalid(
            f"{place} needs one line {BEGIN!r} and below it one line {END!r}; put them where it belongs"
        )
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def opinion_lines(opinions: Opinions | None) -> list[str]:
    """Return what a model thinks of the unmatched facts, marked as no measure."""
    if opinions is None:
        return []
    every = opinions.every
    counts = {name: sum(getattr(one, name) for one in every) for name in ("true", "durable", "useful")}
    counts["all three"] = sum(one.true and one.durable and one.useful for one in every)
    head = f"The model's own opinion ({opinions.version}), no measure, of the {opinions.asked} unmatched facts:"
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    lines = ["", f"{head} {said}; {opinions.asked - len(every)} not answered."]
    return lines + [f"- FAILED: an opinion on {scenario}: {reason}" for scenario, reason in opinions.failures]


def _rows(evaluation: Evaluation) -> dict[str, Callable[[Result], str]]:
    estimated = " (estimated: characters by four)" if evaluation.recording else ""
    shares = {label: _share_cell(name) for name, label in LABELS.items()}
    return {
        **shares,
        "current facts that repeat others": lambda one: f"{one.total.duplicates} of {one.total.current_facts}",
        "facts a session": lambda one: f"{one.a_session(one.total.facts):.1f}",
        "words a fact": lambda one: f"{one.total.words / one.total.facts:.0f}" if one.total.facts else "-",
        "model calls a session": lambda one: f"{one.a_session(one.spent.calls):.1f}",
        "repairs a session": lambda one: f"{one.a_session(one.trial.spent.repairs):.2f}",
        f"prompt tokens a session{estimated}": lambda one: f"{one.a_session(one.spent.prompt_tokens):.0f}",
        f"completion tokens a session{estimated}": lambda one: f"{one.a_session(one.spent.completion_tokens):.0f}",
        "pairs left unjudged": lambda one: str(one.trial.unjudged),
        "sessions that failed": lambda one: f"{len(one.trial.failures)} of {one.total.sessions}",
    }


def _share_cell(name: str) -> Callable[[Result], str]:
    return lambda one: share_text(one.total.shares[name])


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
        told = ", ".join(f"{REASONS.get(why, why)} {share.n} of {share.of}" for why, share in stored.items())
        lines.append(f"- Not-facts stored by {result.name}: {told or 'none'}.")
    return lines


def _origin(evaluation: Evaluation) -> list[str]:
    asked = evaluation.results[0].trial.system
    replies = f"; replies played back from {evaluation.recording}" if evaluation.recording else ""
    return [f"- {asked.name}: extracted by {asked.extractor.version}, judged by {asked.judge.version}{replies}."]


def _failed(results: Sequence[Result]) -> list[str]:
    return [
        f"- FAILED in {result.name}: session {failure.session_id} of {scenario}: {one_line(failure.reason)}"
        for result in results
        for scenario, failure in result.trial.failures
    ]


def one_line(text: str) -> str:
    """Return a text on one line."""
    return re.sub(r"\s+", " ", text).strip()
