"""Reading JSON Lines files whose lines hold columns of tables.

A damaged file raises `FileInvalid`, which names the line.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from sqlmodel import SQLModel

from afterword.errors import FileInvalid, ScopeInvalid
from afterword.facts.assertions import Authority, Cue, EvidenceKind, Extent, Kind, Relation, SpeechAct
from afterword.facts.local_time import LARGEST_OFFSET_S
from afterword.facts.transcripts import Role, TimeBasis

Line = dict[str, Any]

_ENUMS: Mapping[str, type[Enum]] = {
    "sessions.time_basis": TimeBasis,
    "turns.role": Role,
    "assertions.act": SpeechAct,
    "assertions.kind": Kind,
    "assertions.authority": Authority,
    "assertions.cue": Cue,
    "evidence.kind": EvidenceKind,
    "verdicts.relation": Relation,
    "verdicts.extent": Extent,
}


def read_lines(path: Path, parse: Callable[[Line], Line]) -> Iterator[tuple[int, int, Line]]:
    """Yield the number, the size in bytes and the value of each line; `parse` checks it.

    Raises `FileInvalid` if the file cannot be opened, or a line is no JSON object with a "row", or `parse` refuses it.
    """
    try:
        with path.open("rb") as file:
            for number, content in enumerate(file, 1):
                yield number, len(content), _parsed(path, number, content, parse)
    except OSError as error:
        raise FileInvalid(f"{path} cannot be read ({error.strerror}); check the path and its permissions") from None


def _parsed(path: Path, number: int, content: bytes, parse: Callable[[Line], Line]) -> Line:
    try:
        line = json.loads(content.decode())
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or not isinstance(line.get("row"), str):
        raise damaged(path, f"line {number}", "it is no JSON object of an export")
    try:
        return parse(line)
    except (FileInvalid, ScopeInvalid) as error:
        raise damaged(path, f"line {number}", str(error)) from None


def damaged(path: Path, where: str, reason: str) -> FileInvalid:
    """Return the error of a file that is damaged there."""
    mend = "the file is damaged, or of a newer afterword: upgrade, or write the file again where it comes from"
    return FileInvalid(f"{path} {where} cannot be read ({reason}); {mend}")


def parse_columns(table: type[SQLModel], line: object) -> Line:
    """Return the columns of a table that a line holds, as the database takes them. Raises `FileInvalid`.

    A line need not hold foreign keys, which follow from its place in the file, nor numbers that the database assigns.
    """
    shape, defaults = _columns(table)
    values = parse_shape(shape, line, str(table.__tablename__))
    return {**defaults, **{name: getattr(values, name) for name in values.model_fields_set}}


def parse_shape(shape: type[BaseModel], line: object, name: str) -> Any:
    """Return the fields of a line that a shape names. Raises `FileInvalid`."""
    try:
        return shape.model_validate(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, (name, *first["loc"])))
        raise FileInvalid(f"{where}: {first['msg']}") from None


class LineShape(BaseModel):
    """The base of the shapes of lines: no value is converted, and unknown fields are left out."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", strict=True, use_enum_values=True)


@cache
def _columns(table: type[SQLModel]) -> tuple[type[LineShape], Mapping[str, None]]:
    """Return the columns of a table in a line, and the values of those that may be missing."""
    hints = get_type_hints(table)
    columns = SQLModel.metadata.tables[str(table.__tablename__)].columns
    fields: dict[str, Any] = {}
    for column in columns:
        hint = _hint(hints[column.name], _ENUMS.get(f"{table.__tablename__}.{column.name}"))
        if column.name == "utc_offset_s":
            hint = Annotated[int, Field(ge=-LARGEST_OFFSET_S, le=LARGEST_OFFSET_S)]
        may_be_missing = column.nullable or column.foreign_keys or column.default is not None or column.name == "id"
        fields[column.name] = (hint | None if column.nullable else hint, None if may_be_missing else ...)
    shape = create_model(f"{table.__name__}Line", __base__=LineShape, **fields)
    return shape, {column.name: None for column in columns if column.nullable}


def _hint(hint: Any, values: type[Enum] | None) -> Any:
    """Return the type of a column's value in JSON."""
    name = str(hint)
    if values is not None:
        return Literal[tuple(member.value for member in values)]
    if "datetime" in name:
        return Annotated[AwareDatetime, _read_by(datetime.fromisoformat)]
    if "bytes" in name:
        return Annotated[bytes, _read_by(partial(b64decode, validate=True))]
    if "int" in name and "list" not in name and "dict" not in name:
        return Annotated[int, Field(ge=-(2**63), lt=2**63)]
    return hint


def _read_by(parse: Callable[[str], object]) -> BeforeValidator:
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)
