"""The whole evaluation as a Markdown report for people, and as JSON for machines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from afterword.evaluation.report.scorecard import markdown_table, scorecard, share_text
from afterword.evaluation.results import Evaluation, Result
from afterword.evaluation.scenarios.scenario import one_line
from afterword.evaluation.scoring.opinions import OpinionReport
from afterword.evaluation.scoring.scores import Score, score_json
from afterword.extractors.extractor import Usage

Json = dict[str, Any]

TITLES = {
    "missed": "never stored",
    "stale": "out of date, but stored as current",
    "wrongly_retired": "still true, but no longer current in the store",
    "not_facts": "no facts, but stored as current",
    "duplicates": "current facts that repeat others, by keywords",
    "ungrounded": "without verbatim evidence",
    "unmatched": "current facts that match no gold fact",
}
COLUMNS = ("fact_recall", "current_recall", "precision", "update_correct", "wrongly_retired", "not_facts_stored")
HEAD = ["scenario", "fact recall", "current", "precision", "updates", "wrongly retired", "not-facts", "failed"]


def full_report(evaluation: Evaluation, chart_file: str) -> str:
    """Return the report: the scorecard, the chart (a file beside it), every scenario, and a list of the misses."""
    tested = evaluation.results[0]
    lines = ["# Scorecard", "", scorecard(evaluation), "", f"![Shares of which more is better]({chart_file})", ""]
    for result in evaluation.results:
        lines += [f"## Scenario by scenario: {result.name}", "", *markdown_table(HEAD, _scenario_rows(result)), ""]
    lines += [f"## What to read: {tested.name}", "", "Keywords are blind to meaning: read before you believe.", ""]
    for scenario, score in tested.scores.items():
        lines += [f"### {scenario}", "", *_missed(score), ""]
    lines += _opinions(evaluation.opinions)
    return "\n".join(lines).rstrip() + "\n"


def evaluation_json(evaluation: Evaluation) -> Json:
    """Return all figures, scenario by scenario, with the list of the misses."""
    return {
        "scenarios": [scenario.id for scenario in evaluation.scenarios],
        "order": evaluation.order,
        "seed": evaluation.seed,
        "recording": evaluation.recording,
        "systems": [_result_json(result) for result in evaluation.results],
        "opinions": _opinions_json(evaluation.opinions) if evaluation.opinions else None,
    }


def _scenario_rows(result: Result) -> list[list[str]]:
    failed = [scenario for scenario, _ in result.trial.failures]
    return [
        [name, *(share_text(score.shares[column]) for column in COLUMNS), f"{failed.count(name)} of {score.sessions}"]
        for name, score in result.scores.items()
    ]


def _missed(score: Score) -> Iterator[str]:
    if not any(score.misses.values()):
        yield "Nothing."
    for name, title in TITLES.items():
        if score.misses[name]:
            yield f"{title}:"
            yield ""
            yield from (f"- {_miss_line(miss)}" for miss in score.misses[name])
            yield ""


def _miss_line(miss: Mapping[str, Any]) -> str:
    """Return a miss on one line: the expected statement, and what is stored in its place."""
    label = miss.get("why") or miss.get("gold") or ""
    name = f"[{', '.join(label) if isinstance(label, list) else label}] " if label else ""
    stored = [fact if isinstance(fact, str) else f"({fact[0]}) {fact[1]}" for fact in miss.get("stored", ())]
    return markdown_text(name + miss["statement"] + "".join(f" <- {statement}" for statement in stored))


def _opinions(opinions: OpinionReport | None) -> list[str]:
    if opinions is None:
        return []
    lines = ["## The model's own opinion of the unmatched facts", "", f"By {opinions.version}. No measure.", ""]
    rows = [
        [
            scenario,
            markdown_text(statement),
            *(_yes(answer) for answer in (opinion.true, opinion.durable, opinion.useful)),
            markdown_text(opinion.reason),
        ]
        for scenario, pairs in opinions.by_scenario.items()
        for statement, opinion in pairs
    ]
    return [*lines, *markdown_table(["scenario", "fact", "true", "durable", "useful", "reason"], rows)]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _result_json(result: Result) -> Json:
    trial = result.trial
    usage = trial.usage
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
            "extraction": _usage_json(usage.extraction),
            "repair": _usage_json(usage.repair),
            "judging": _usage_json(usage.judging),
            "a_session": _usage_per_session(result),
        },
    }


def _usage_json(usage: Usage) -> Json:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def _usage_per_session(result: Result) -> Json:
    amounts = {**_usage_json(result.usage), "repairs": result.trial.usage.repairs}
    return {name: round(result.per_session(amount), 2) for name, amount in amounts.items()}


def _opinions_json(opinions: OpinionReport) -> Json:
    return {
        "what": "the model's own opinion, no measure",
        "version": opinions.version,
        "asked": opinions.asked,
        "answered": len(opinions.all_opinions),
        "given": {
            scenario: [{"statement": statement, **opinion.model_dump(exclude={"note"})} for statement, opinion in pairs]
            for scenario, pairs in opinions.by_scenario.items()
        },
        "failed": [{"scenario": scenario, "reason": reason} for scenario, reason in opinions.failures],
        "usage": _usage_json(opinions.usage),
    }


def markdown_text(text: str) -> str:
    """Return a text on one line, with every character escaped that Markdown would format or take for a cell's end."""
    return re.sub(r"([\\`*_<>|\[\]#])", r"\\\1", one_line(text))
