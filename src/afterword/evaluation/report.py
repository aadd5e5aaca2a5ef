"""The whole evaluation: as a Markdown report for people, and as JSON for machines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from afterword.evaluation.opinions import Opinions
from afterword.evaluation.results import Evaluation, Result
from afterword.evaluation.scorecard import one_line, scorecard, share_text, table
from afterword.evaluation.scores import Score, as_json
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


def report(evaluation: Evaluation, chart_file: str) -> str:
    """Return the report: scorecard, chart (a file beside it), every scenario, and what was missed, by name."""
    asked = evaluation.results[0]
    lines = ["# Scorecard", "", scorecard(evaluation), "", f"![Shares of which more is better]({chart_file})", ""]
    for result in evaluation.results:
        lines += [f"## Scenario by scenario: {result.name}", "", *table(HEAD, _scenario_rows(result)), ""]
    lines += [f"## What to read: {asked.name}", "", "Keywords are blind to meaning: read before you believe.", ""]
    for scenario, score in asked.scores.items():
        lines += [f"### {scenario}", "", *_missed(score), ""]
    lines += _opinions(evaluation.opinions)
    return "\n".join(lines).rstrip() + "\n"


def evaluation_json(evaluation: Evaluation) -> Json:
    """Return everything that was measured, scenario by scenario, with what was missed by name."""
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
            yield from (f"- {_told(item)}" for item in score.misses[name])
            yield ""


def _told(item: Mapping[str, Any]) -> str:
    """Return what was missed on one line: the gold's sentence, and what is stored in its place."""
    label = item.get("why") or item.get("gold") or ""
    name = f"[{', '.join(label) if isinstance(label, list) else label}] " if label else ""
    stored = [one if isinstance(one, str) else f"({one[0]}) {one[1]}" for one in item.get("stored", ())]
    return plain(name + item["statement"] + "".join(f" <- {one}" for one in stored))


def _opinions(opinions: Opinions | None) -> list[str]:
    if opinions is None:
        return []
    lines = ["## The model's own opinion of the unmatched facts", "", f"By {opinions.version}. No measure.", ""]
    rows = [
        [scenario, plain(statement), *(_yes(one) for one in (said.true, said.durable, said.useful)), plain(said.reason)]
        for scenario, pairs in opinions.given.items()
        for statement, said in pairs
    ]
    return [*lines, *table(["scenario", "fact", "true", "durable", "useful", "reason"], rows)]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _result_json(result: Result) -> Json:
    trial = result.trial
    spent = trial.spent
    return {
        "name": result.name,
        "extractor": trial.system.extractor.version,
        "judge": trial.system.judge.version,
        "total": as_json(result.total),
        "scenarios": {name: as_json(score) for name, score in result.scores.items()},
        "failed": [
            {"scenario": scenario, "session_id": failure.session_id, "reason": failure.reason}
            for scenario, failure in trial.failures
        ],
        "unjudged": trial.unjudged,
        "repairs": spent.repairs,
        "usage": {
            "extraction": _usage(spent.extraction),
            "repair": _usage(spent.repair),
            "judging": _usage(spent.judging),
            "a_session": _a_session(result),
        },
    }


def _usage(usage: Usage) -> Json:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def _a_session(result: Result) -> Json:
    amounts = {**_usage(result.spent), "repairs": result.trial.spent.repairs}
    return {name: round(result.a_session(amount), 2) for name, amount in amounts.items()}


def _opinions_json(opinions: Opinions) -> Json:
    return {
        "what": "the model's own opinion, no measure",
        "version": opinions.version,
        "asked": opinions.asked,
        "answered": len(opinions.every),
        "given": {
            scenario: [{"statement": statement, **said.model_dump(exclude={"note"})} for statement, said in pairs]
            for scenario, pairs in opinions.given.items()
        },
        "failed": [{"scenario": scenario, "reason": reason} for scenario, reason in opinions.failures],
        "usage": _usage(opinions.usage),
    }


def plain(text: str) -> str:
    """Return a text on one line in which Markdown finds nothing to format and no cell ends."""
    return re.sub(r"([\\`*_<>|\[\]#])", r"\\\1", one_line(text))
