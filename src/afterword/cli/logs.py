"""How the command line writes log records: one line each on standard error, as text for people or JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from opentelemetry import trace

from afterword import settings
from afterword.setting_sections import LogFormat, LogLevel, LogOptions

NAME = "afterword.cli"
FIELDS = ("stage", "scope", "session_id", "run_id", "job")


class StandardErrorHandler(logging.Handler):
    """Writes each line to the present `sys.stderr`, which a program may replace."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        sys.stderr.write(self.format(record) + "\n")


class TextFormatter(logging.Formatter):
    """Formats a record as text, such as `2026-01-31T18:00:00Z WARNING what happened [session_id=monday]`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with a traceback on further lines."""
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = f"{_instant(record)} {record.levelname} {record.getMessage()}" + (f" [{fields}]" if fields else "")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: time, level, logger, message, known fields, ids of the present trace."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, Any] = {"time": _instant(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage(), **_fields(record)}
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            line |= {"trace_id": trace.format_trace_id(span.trace_id), "span_id": trace.format_span_id(span.span_id)}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure(log_format: LogFormat | None, level: LogLevel | None) -> None:
    """Configure logging by the options, else by the settings. The command itself reports invalid settings.

    Other libraries log only warnings and errors, because their other records may contain what is sent to a model.
    """
    try:
        configured = settings.load().log
    except settings.SettingsInvalid:
        configured = LogOptions()
    handler, root = StandardErrorHandler(), logging.getLogger()
    handler.name = NAME
    handler.setFormatter(JsonFormatter() if (log_format or configured.format) == "json" else TextFormatter())
    for old in [former for former in root.handlers if former.name == NAME]:
        root.removeHandler(old)
    root.addHandler(handler)
    chosen = (level or configured.level).upper()
    logging.getLogger("afterword").setLevel(logging.NOTSET if chosen == "WARNING" else chosen)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None}


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
