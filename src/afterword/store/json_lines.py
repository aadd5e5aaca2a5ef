"""Reading JSON Lines files in which each line holds one row of a table.

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
                yield number, len(content), _parsed_line(path, number, content, parse)
    except OSError as error:
        raise FileInvalid(f"{path} cannot be read ({error.strerror}); check the path and its permissions") from None


def _parsed_line(path: Path, number: int, content: bytes, parse: Callable[[Line], Line]) -> Line:
    try:
        line = json.loads(content.decode())
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or not isinstance(line.get("row"), str):
        raise damaged_file_error(path, f"line {number}", "it is no JSON object of an export")
    try:
        return parse(line)
    except (FileInvalid, ScopeInvalid) as error:
        raise damaged_file_error(path, f"line {number}", str(error)) from None


def damaged_file_error(path: Path, where: str, reason: str) -> FileInvalid:
    """Return the error that says where a file is damaged, and why it cannot be read."""
    hint = "the file is damaged, or a newer afterword wrote it: upgrade afterword, or export the file again"
    return FileInvalid(f"{path} {where} cannot be read ({reason}); {hint}")


def parse_columns(table: type[SQLModel], line: object) -> Line:
    """Return the values of a line by column, in the types that the database takes. Raises `FileInvalid`.

    Foreign keys may be missing, since they follow from the position of the line in its file, and so may ids that the
    database assigns.
    """
    shape, defaults = _line_shape_and_defaults(table)
    values = parse_shape(shape, line, str(table.__tablename__))
    return {**defaults, **{name: getattr(values, name) for name in values.model_fields_set}}


def parse_shape(shape: type[BaseModel], line: object, name: str) -> Any:
    """Return a line as an object of the class `shape`.

    Raises `FileInvalid` if it does not fit. The error names the wrong field, after `name`.
    """
    try:
        return shape.model_validate(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, (name, *first["loc"])))
        raise FileInvalid(f"{where}: {first['msg']}") from None


class LineShape(BaseModel):
    """The base class of shapes: Pydantic models of lines. They convert no values, and ignore unknown fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", strict=True, use_enum_values=True)


@cache
def _line_shape_and_defaults(table: type[SQLModel]) -> tuple[type[LineShape], Mapping[str, None]]:
    """Return the shape of a table's lines, and the default (None) of each column that may be null."""
    hints = get_type_hints(table)
    columns = SQLModel.metadata.tables[str(table.__tablename__)].columns
    fields: dict[str, Any] = {}
    for column in columns:
        hint = _type_in_json(hints[column.name], _ENUMS.get(f"{table.__tablename__}.{column.name}"))
        if column.name == "utc_offset_s":
            hint = Annotated[int, Field(ge=-LARGEST_OFFSET_S, le=LARGEST_OFFSET_S)]
        may_be_missing = column.nullable or column.foreign_keys or column.default is not None or column.name == "id"
        fields[column.name] = (hint | None if column.nullable else hint, None if may_be_missing else ...)
    shape = create_model(f"{table.__name__}Line", __base__=LineShape, **fields)
    return shape, {column.name: None for column in columns if column.nullable}


def _type_in_json(hint: Any, values: type[Enum] | None) -> Any:
    """Return the type that a column's value must have in JSON; `values` are the only ones allowed, unless None."""
    name = str(hint)
    if values is not None:
        return Literal[tuple(member.value for member in values)]
    if "datetime" in name:
        return Annotated[AwareDatetime, _text_parser(datetime.fromisoformat)]
    if "bytes" in name:
        return Annotated[bytes, _text_parser(partial(b64decode, validate=True))]
    if "int" in name and "list" not in name and "dict" not in name:
        return Annotated[int, Field(ge=-(2**63), lt=2**63)]
    return hint


def _text_parser(parse: Callable[[str], object]) -> BeforeValidator:
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)
