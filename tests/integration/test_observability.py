"""What is told to OpenTelemetry and to logs: all that the documentation lists, and no word of a user."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from afterword.store.database.engine import Store
from afterword.telemetry import Count, Measure, Stage, scope_mark
from all_stages import LENA, MARKER, live
from observing import Heard, Point, listening


@pytest.fixture(scope="module")
def documented(repository: Path) -> dict[str, list[list[str]]]:
    """The tables of the page, by their heading: of each row the cells, of each cell what stands in backticks."""
    page = (repository / "docs" / "observability.md").read_text(encoding="utf-8")
    tables: dict[str, list[list[str]]] = {}
    for heading, body in re.findall(r"\n## (\w+)\n(.*?)(?=\n## |\Z)", page, re.DOTALL):
        rows = [line.strip("|").split("|") for line in body.splitlines() if line.startswith("| `")]
        tables[heading] = [[cell.strip() for cell in row] for row in rows]
    return tables


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


class Kept(logging.Handler):
    """Keeps the records of a logger."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Heard, list[logging.LogRecord]]:
    """All that is told while one memory passes through every stage."""
    folder, kept, logger = tmp_path_factory.mktemp("life"), Kept(), logging.getLogger("afterword")

    async def life() -> None:
        async with Store(f"sqlite:///{folder}/afterword.db") as store:
            await live(store, folder)

    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(kept)
    try:
        with listening() as heard:
            asyncio.run(life())
    finally:
        logger.removeHandler(kept)
        logger.setLevel(level)
    return heard, kept.records


@pytest.fixture(scope="module")
def heard(told: tuple[Heard, list[logging.LogRecord]]) -> Heard:
    return told[0]


@pytest.fixture(scope="module")
def records(told: tuple[Heard, list[logging.LogRecord]]) -> list[logging.LogRecord]:
    return told[1]


def told_of(heard: Heard) -> dict[str, set[str]]:
    """The attributes that each span was told with, models' names left out of the names of spans."""
    found: dict[str, set[str]] = {}
    for span in heard.spans:
        model = span.attributes.get("gen_ai.request.model") if span.attributes else None
        name = span.name.replace(f" {model}", " {model}")
        found.setdefault(name, set()).update(span.attributes or ())
    return {name: attributes - {"error.type"} for name, attributes in found.items()}


def test_the_documentation_lists_every_span_with_its_attributes(heard: Heard, documented: Any) -> None:
    listed = {names(name).pop(): names(attributes) for name, attributes, _ in documented["Spans"]}
    assert told_of(heard) == listed
    assert set(Stage) <= listed.keys()


def test_the_documentation_lists_every_counter_and_histogram(heard: Heard, documented: Any) -> None:
    rows = [*documented["Counters"], *documented["Histograms"]]
    listed = {(names(name).pop(), names(unit).pop()): names(attributes) for name, unit, attributes, _ in rows}
    told: dict[tuple[str, str], set[str]] = {}
    for point in heard.points:
        told.setdefault((point.name, point.unit), set()).update(point.attributes)
    assert told == listed
    assert {name for name, _ in listed} == {*Count, *Measure}


def test_no_word_of_a_user_is_told(heard: Heard, records: list[logging.LogRecord]) -> None:
    texts = [span.to_json() for span in heard.spans] + [repr(point) for point in heard.points]
    texts += [json.dumps(vars(record), default=str) for record in records]
    assert len(texts) > 100
    assert len(records) > 5
    assert not [text for text in texts if MARKER.lower() in text.lower()]
    assert not [text for text in texts if "lena@example.com" in text and "set aside" not in text]


def test_the_stages_of_a_session_hang_together(heard: Heard) -> None:
    batch = heard.named("afterword.batch")[0]
    processed = [one for one in heard.named("afterword.session") if one.parent == batch.context and one.attributes]
    (first, *_) = [one for one in processed if one.attributes and one.attributes["afterword.session_id"] == "s0"]
    inside = [one.name for one in heard.spans if one.parent == first.context]
    assert inside == ["afterword.read", "afterword.extract", *inside[2:]]
    assert {"afterword.ground", "afterword.propose", "afterword.apply"} <= set(inside)
    assert first.attributes is not None
    assert first.attributes["afterword.scope"] == scope_mark(LENA)
    (extract, *_) = heard.named("afterword.extract")
    assert "chat scripted" in [one.name for one in heard.spans if one.parent == extract.context]


def test_counters_add_up_to_what_was_done(heard: Heard) -> None:
    results = {"done", "unchanged", "failed", "set aside", "off the record"}
    assert {one.attributes["afterword.result"] for one in heard.points if one.name == Count.SESSIONS} == results
    assert heard.total(Count.SESSIONS, result="set aside") == 1
    assert heard.total(Count.REFUSED) >= 4
    asked = heard.named("chat scripted")
    calls = [int(str(one.attributes["afterword.calls"])) for one in asked if one.attributes]
    assert heard.total(Count.CALLS) == sum(calls)
    sizes: list[Point] = [one for one in heard.points if one.name == Measure.GEN_AI_TOKENS]
    uncached = [one for one in heard.points if one.attributes.get("gen_ai.token.type") != "cached"]
    assert sum(one.value for one in sizes) == sum(one.value for one in uncached if one.name == Count.TOKENS)
    assert heard.total(Count.COST) > 0


def test_a_failure_is_told_by_its_type(heard: Heard) -> None:
    failed = [one for one in heard.named("afterword.session") if one.status.status_code is StatusCode.ERROR]
    assert failed
    assert failed[0].attributes is not None
    assert failed[0].attributes["error.type"] == "AnswerInvalid"
    assert failed[0].status.description is None
    assert not failed[0].events


def test_log_records_carry_the_ids_of_what_is_done(heard: Heard, records: list[logging.LogRecord]) -> None:
    ended = [vars(one) for one in records if one.getMessage() == "session done"]
    assert {one["session_id"] for one in ended} >= {"s0", "live"}
    assert {one["stage"] for one in ended} == {"afterword.session"}
    assert {one["scope"] for one in ended} == {scope_mark(LENA)}
    assert all(one["run_id"] for one in ended)
