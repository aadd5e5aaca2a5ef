"""Reports of an evaluation: a scorecard, and JSON with the figures and the mistakes of each scenario.

The scorecard is a Markdown table with a row for each measure and a column for each system.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from afterword.errors import ArgumentInvalid
from afterword.evaluation.measurement import Evaluation, SystemResult
from afterword.evaluation.scenarios.scenario import one_line
from afterword.evaluation.scorer import Share, fact_json_for_scorers, score_json
from afterword.extractors.extractor import Usage
from afterword.pipeline.errors import SourceInvalid

Json = dict[str, Any]

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
    """Return the scorecard as Markdown, with a list of failures below it."""
    results = evaluation.results
    rows = [[label, *(cell_of(result) for result in results)] for label, cell_of in _cells_by_label(evaluation).items()]
    lines = [
        _heading(evaluation),
        "",
        *markdown_table(["", *(result.name for result in results)], rows),
        "",
        *_stored_not_facts(results),
        *_system_notes(evaluation),
        *(
            f"- FAILED in {result.name}: session {failure.session_id} of {scenario}: {one_line(failure.reason)}"
            for result in results
            for scenario, failure in result.trial.failures
        ),
    ]
    return "\n".join(lines)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table whose columns are padded to equal width."""
    widths = [max(3, *(len(row[place]) for row in [head, *rows])) for place in range(len(head))]
    ruled = ["-" * width for width in widths]
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, ruled, *rows]
    ]


def share_text(share: Share) -> str:
    """Return a share as text, for example `43 of 49 (0.88)`."""
    return "-" if share.ratio is None else f"{share.n} of {share.of} ({share.ratio:.2f})"


def replace_scorecard(text: str, card: str, document: str) -> str:
    """Return the text of a document, in which `card` stands instead of the old scorecard between the two markers.

    Raises `SourceInvalid`, naming `document`, unless the text has each marker once and in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SourceInvalid(
            f"{document} needs one line {BEGIN!r} and below it one line {END!r}; put them where the scorecard belongs"
        )
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}\n{card}\n{END}{after}"


def _cells_by_label(evaluation: Evaluation) -> dict[str, Callable[[SystemResult], str]]:
    estimated = " (estimated: characters by four)" if evaluation.recording else ""

    def cell_of(name: str) -> Callable[[SystemResult], str]:
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


def _stored_not_facts(results: Sequence[SystemResult]) -> Iterator[str]:
    for result in results:
        stored = {why: share for why, share in result.total.not_facts_by_why.items() if share.n}
        reasons = ", ".join(f"{REASONS.get(why, why)} {share.n} of {share.of}" for why, share in stored.items())
        yield f"- Not-facts stored by {result.name}: {reasons or 'none'}."


def _system_notes(evaluation: Evaluation) -> list[str]:
    tested = evaluation.results[0].trial.system
    replies = f"; replies played back from {evaluation.recording}" if evaluation.recording else ""
    return [
        f"- {tested.name}: extracted by {tested.extractor.version}, judged by {tested.judge.version}{replies}.",
        "- offline rules: a small grammar of English clauses, for trying afterword out and for testing applications.",
    ]


def evaluation_json(evaluation: Evaluation) -> Json:
    """Return all figures as JSON, scenario by scenario, with the list of the misses."""
    return {
        "scenarios": [scenario.id for scenario in evaluation.scenarios],
        "order": evaluation.order,
        "seed": evaluation.seed,
        "recording": evaluation.recording,
        "systems": [_result_json(result) for result in evaluation.results],
    }


def _result_json(result: SystemResult) -> Json:
    trial, usage = result.trial, result.trial.usage
    amounts = {**_usage_json(result.usage), "repairs": usage.repairs}
    return {
        "name": result.name,
        "extractor": trial.system.extractor.version,
        "judge": trial.system.judge.version,
        "total": score_json(result.total),
        "scenarios": {name: score_json(score) for name, score in result.scores.items()},
        "failed": [
            {"scenario": scenario, "session_id": failure.session_id, "reason": failure.reason}
            for scenario, failure in trial.failures
        ],
        "unjudged": trial.unjudged,
        "repairs": usage.repairs,
        "usage": {
            **{part: _usage_json(getattr(usage, part)) for part in ("extraction", "repair", "judging")},
            "a_session": {name: round(result.per_session(amount), 2) for name, amount in amounts.items()},
        },
    }


def _usage_json(usage: Usage) -> Json:
    return {name: getattr(usage, name) for name in ("calls", "prompt_tokens", "completion_tokens")}


def check_scorecard_markers(path: Path) -> None:
    """Raise `ArgumentInvalid` if a document cannot be read, and `SourceInvalid` if it lacks the scorecard markers."""
    replace_scorecard(_read_text(path), "", str(path))


def write_scorecard_between_markers(path: Path, card: str) -> None:
    """Write the scorecard between the two markers of a document."""
    _write_text(path, replace_scorecard(_read_text(path), card, str(path)))


def save_tested_system_facts(folder: Path, evaluation: Evaluation) -> None:
    """Write the facts of the first system to files, one for each scenario."""
    for scenario, facts in evaluation.results[0].trial.facts.items():
        exported = json.dumps([fact_json_for_scorers(fact) for fact in facts], ensure_ascii=False, indent=1)
        _write_text(folder / f"{scenario}.json", f"{exported}\n")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ArgumentInvalid(f"{path} cannot be read ({error.strerror})") from None


def _write_text(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentInvalid(f"{path} cannot be written ({error.strerror})") from None
