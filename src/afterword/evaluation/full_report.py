"""Reports of an evaluation: Markdown with a chart for people, and JSON for machines. They are written to files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from afterword.errors import ArgumentInvalid
from afterword.evaluation.measurement import Evaluation, Result
from afterword.evaluation.opinions import OpinionReport
from afterword.evaluation.scenarios.scenario import one_line
from afterword.evaluation.scorecard import LABELS, markdown_table, scorecard, share_text, written_into
from afterword.evaluation.scorer import Score, exported_fact, score_json
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

SHOWN = (
    "fact_recall",
    "current_recall",
    "precision",
    "update_correct",
    "retracted_gone",
    "kind_correct",
    "evidence_ok",
)
COLOURS = ("#1b6ca8", "#e08e0b", "#8a8a8a", "#6b4fa0")
LEFT, WIDTH, BAR, GAP, TOP, RIGHT = 230, 420, 14, 14, 56, 70
FONT = 'font-family="system-ui, sans-serif" font-size="12"'


def full_report(evaluation: Evaluation, chart_file: str) -> str:
    """Return the Markdown report: the scorecard, a link to the chart, every scenario, and a list of the misses."""
    tested = evaluation.results[0]
    lines = ["# Scorecard", "", scorecard(evaluation), "", f"![Shares of which more is better]({chart_file})", ""]
    for result in evaluation.results:
        failed = [scenario for scenario, _ in result.trial.failures]
        rows = [
            [
                name,
                *(share_text(score.shares[column]) for column in COLUMNS),
                f"{failed.count(name)} of {score.sessions}",
            ]
            for name, score in result.scores.items()
        ]
        lines += [f"## Scenario by scenario: {result.name}", "", *markdown_table(HEAD, rows), ""]
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


def _missed(score: Score) -> Iterator[str]:
    if not any(score.misses.values()):
        yield "Nothing."
    for name, title in TITLES.items():
        if score.misses[name]:
            yield from (f"{title}:", "", *(f"- {_miss_line(miss)}" for miss in score.misses[name]), "")


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
            *("yes" if answer else "no" for answer in (opinion.true, opinion.durable, opinion.useful)),
            markdown_text(opinion.reason),
        ]
        for scenario, pairs in opinions.by_scenario.items()
        for statement, opinion in pairs
    ]
    return [*lines, *markdown_table(["scenario", "fact", "true", "durable", "useful", "reason"], rows)]


def _result_json(result: Result) -> Json:
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
            "extraction": _usage_json(usage.extraction),
            "repair": _usage_json(usage.repair),
            "judging": _usage_json(usage.judging),
            "a_session": {name: round(result.per_session(amount), 2) for name, amount in amounts.items()},
        },
    }


def _usage_json(usage: Usage) -> Json:
    return {name: getattr(usage, name) for name in ("calls", "prompt_tokens", "completion_tokens")}


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


def chart(results: Sequence[Result]) -> str:
    """Return a bar chart of the results as SVG, with one colour for each. A share of 0 facts has no bar."""
    group = len(results) * BAR + GAP
    height = TOP + len(SHOWN) * group + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" role="img" {FONT}>',
        "<title>How good it is: more is better</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *_legend(results),
    ]
    for place, name in enumerate(SHOWN):
        top = TOP + place * group
        label = escape(LABELS[name])
        middle = top + len(results) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle:g}" text-anchor="end" fill="#222222">{label}</text>')
        for number, result in enumerate(results):
            parts += _bar(top + number * BAR, result.total.shares[name].ratio, _colour(number))
    return "\n".join([*parts, "</svg>", ""])


def _legend(results: Sequence[Result]) -> list[str]:
    parts = []
    for number, result in enumerate(results):
        left = LEFT + number * (WIDTH + RIGHT) // len(results)
        parts.append(f'<rect x="{left}" y="18" width="10" height="10" fill="{_colour(number)}"/>')
        parts.append(f'<text x="{left + 15}" y="27" fill="#222222">{escape(result.name)}</text>')
    return parts


def _bar(top: int, share: float | None, colour: str) -> list[str]:
    width = round((share or 0) * WIDTH)
    text = "-" if share is None else f"{share:.2f}"
    return [
        f'<rect x="{LEFT}" y="{top}" width="{width}" height="{BAR - 2}" fill="{colour}"/>',
        f'<text x="{LEFT + width + 5}" y="{top + BAR - 4}" fill="#222222">{text}</text>',
    ]


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def check_markers(path: Path) -> None:
    """Raise `ArgumentInvalid` if a document cannot be read, and `SourceInvalid` if a scorecard has no place in it."""
    written_into(_text_of(path), "", str(path))


def write_scorecard(path: Path, card: str) -> None:
    """Write the scorecard between the two markers of a document."""
    _write(path, written_into(_text_of(path), card, str(path)))


def write_report(path: Path, evaluation: Evaluation) -> None:
    """Write a report in Markdown, and its chart beside it."""
    drawing = path.with_suffix(".svg")
    _write(path, full_report(evaluation, drawing.name))
    _write(drawing, chart(evaluation.results))


def save_scenario_facts(folder: Path, evaluation: Evaluation) -> None:
    """Write the facts that the first system holds of each scenario, each to a file of its own."""
    for scenario, facts in evaluation.results[0].trial.facts.items():
        exported = json.dumps([exported_fact(fact) for fact in facts], ensure_ascii=False, indent=1)
        _write(folder / f"{scenario}.json", f"{exported}\n")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ArgumentInvalid(f"{path} cannot be read ({error.strerror})") from None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentInvalid(f"{path} cannot be written ({error.strerror})") from None
