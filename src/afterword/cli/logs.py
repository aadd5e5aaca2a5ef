"""How the command line writes log records: a line each on standard error, as text for people or JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from opentelemetry import trace

from afterword import settings
from afterword.settings import LogFormat, LogLevel, LogOptions, SettingsInvalid

NAME = "afterword.cli"
FIELDS = ("stage", "scope", "session_id", "run_id", "job")


class Errors(logging.Handler):
    """Writes lines to standard error, whatever that is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        sys.stderr.write(self.format(record) + "\n")


class Text(logging.Formatter):
    """`2026-01-31T18:00:00Z WARNING what happened [stage=afterword.session session_id=monday]`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; a traceback follows on lines of its own."""
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        told = f"{_instant(record)} {record.levelname} {record.getMessage()}" + (f" [{fields}]" if fields else "")
        return f"{told}\n{self.formatException(record.exc_info)}" if record.exc_info else told


class Json(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the fields that are known."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        told: dict[str, Any] = {"time": _instant(record), "level": record.levelname.lower(), "logger": record.name}
        told |= {"message": record.getMessage(), **_fields(record), **_place()}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


def configure(form: LogFormat | None, level: LogLevel | None) -> None:
    """Write log records as the options say, else as configured; settings that cannot be used are the command's to tell.

    Other libraries are heard from WARNING on: below, they may tell what is sent to a model.
    """
    try:
        configured = settings.load().log
    except SettingsInvalid:
        configured = LogOptions()
    handler, root = Errors(), logging.getLogger()
    handler.name = NAME
    handler.setFormatter(Json() if (form or configured.format) == "json" else Text())
    for old in [one for one in root.handlers if one.name == NAME]:
        root.removeHandler(old)
    root.addHandler(handler)
    chosen = (level or configured.level).upper()
    logging.getLogger("afterword").setLevel(logging.NOTSET if chosen == "WARNING" else chosen)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None}


def _place() -> dict[str, str]:
    """Return where in a trace the record was made, nothing outside of one."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
