"""Write an evaluation to files: a scorecard within a document, a report with its chart, the facts of each scenario."""

from __future__ import annotations

import json
from pathlib import Path

from afterword.errors import ArgumentInvalid
from afterword.evaluation.report.chart import chart
from afterword.evaluation.report.full_report import full_report
from afterword.evaluation.report.scorecard import written_into
from afterword.evaluation.results import Evaluation
from afterword.evaluation.scoring.scorer import exported_fact


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
