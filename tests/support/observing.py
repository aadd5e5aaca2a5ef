"""Everything that OpenTelemetry's own SDK is told while a test listens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

OURS = "afterword"


@dataclass(frozen=True)
class Point:
    """One value of a counter (`value`, `count` 1) or a histogram, since a test began to listen."""

    name: str
    unit: str
    attributes: Mapping[str, Any]
    value: float
    count: int


@dataclass
class Heard:
    """What was told: spans as they ended, and the points of all metrics once the test has ended listening."""

    spans: list[ReadableSpan] = field(default_factory=list)
    others: list[ReadableSpan] = field(default_factory=list)
    """The spans of other libraries."""
    points: list[Point] = field(default_factory=list)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def total(self, name: str, **attributes: Any) -> float:
        """The sum of a counter over the points with these attributes, named without their `afterword.`."""
        wanted = {f"afterword.{key}": value for key, value in attributes.items()}.items()
        return sum(one.value for one in self.points if one.name == name and wanted <= one.attributes.items())


class _Listening(SpanProcessor):
    def __init__(self) -> None:
        self.heard: Heard | None = None

    def on_end(self, span: ReadableSpan) -> None:
        if self.heard is not None:
            is_ours = span.instrumentation_scope is not None and span.instrumentation_scope.name == OURS
            (self.heard.spans if is_ours else self.heard.others).append(span)


@cache
def _set_up() -> tuple[_Listening, InMemoryMetricReader]:
    """A process has one provider of each kind, for good; so it listens only when it is asked to."""
    listening = _Listening()
    tracers = TracerProvider()
    tracers.add_span_processor(listening)
    trace.set_tracer_provider(tracers)
    delta = AggregationTemporality.DELTA
    reader = InMemoryMetricReader(preferred_temporality={Counter: delta, Histogram: delta})
    metrics.set_meter_provider(MeterProvider([reader]))
    return listening, reader


@contextmanager
def listening() -> Iterator[Heard]:
    """Listen to spans and metrics of afterword."""
    processor, reader = _set_up()
    reader.get_metrics_data()
    processor.heard = heard = Heard()
    try:
        yield heard
    finally:
        processor.heard = None
        heard.points += _points(reader)


def _points(reader: InMemoryMetricReader) -> Iterator[Point]:
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics if scope.scope.name == OURS else ():
                for one in metric.data.data_points:
                    value, count = getattr(one, "value", None), getattr(one, "count", 1)
                    total = getattr(one, "sum", 0.0) if value is None else value
                    yield Point(metric.name, metric.unit or "", dict(one.attributes or {}), total, count)
