"""Scenarios: conversations over several sessions, and the gold that says what a careful reader would keep of them.

A `Story` is what the pipeline may see. The gold is for the scorer alone, which is why `Scenario.story` leaves it out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from afterword.facts.assertions import Kind
from afterword.pipeline.errors import SourceInvalid

Role = Literal["user", "assistant", "system", "memory", "tool_call", "tool_result", "thought"]
Container = Literal["assistant", "round_robin", "selector", "swarm", "team", "v02", "openai"]
GoldStatus = Literal["current", "superseded", "retracted", "expired"]


def _file_name(text: str) -> str:
    if not re.fullmatch(r"\w[\w.@+-]*", text):
        raise ValueError("must be usable as a file name: letters, digits, and . @ + - _")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression ({error})") from None
    return text


Name = Annotated[str, AfterValidator(_file_name)]
Keywords = Annotated[list[list[Annotated[str, AfterValidator(_pattern)]]], Field(min_length=1)]
"""AND over groups, OR within a group; each item is a regular expression, searched whatever the case."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Message(_Part):
    """One thing that was said, thought, called, returned or injected."""

    role: Role
    source: str = ""
    content: str = ""
    name: str = ""
    call_id: str = ""
    arguments: dict[str, object] | str = Field(default_factory=dict)
    is_error: bool = False
    at: AwareDatetime | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments of a tool call as the text that a model gives."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


class Session(_Part):
    """One conversation, and what kind of agent or team it was held with (`container`)."""

    session_id: Name
    started_at: AwareDatetime
    ended_at: AwareDatetime
    container: Container
    messages: list[Message]

    @property
    def humans(self) -> list[str]:
        """The people who speak in it, sorted."""
        return sorted({message.source for message in self.messages if message.role == "user"})


class GoldFact(_Part):
    """A fact that a careful reader would keep, with its status after the last session."""

    id: str
    kind: Kind
    statement: str
    keywords: Keywords
    status: GoldStatus
    valid_to: str | None = None


class NotFact(_Part):
    """What must not be held as true, and why."""

    statement: str
    keywords: Keywords
    why: str


class Gold(_Part):
    """What is known to be right about a scenario."""

    facts: list[GoldFact]
    not_facts: list[NotFact]


class Story(_Part):
    """What a pipeline may see of a scenario: whose memory it is, and the sessions in the order of time.

    `arrival` lists the session ids in the order in which they reach the pipeline, where that is another one.
    """

    id: Name
    user_id: Name
    sessions: list[Session] = Field(min_length=1)
    arrival: list[str] | None = None

    @model_validator(mode="after")
    def _sessions_are_told_apart(self) -> Self:
        ids = [session.session_id for session in self.sessions]
        twice = [name for name, count in Counter(ids).items() if count > 1]
        if twice:
            raise ValueError(f"session {twice[0]!r} stands in it twice")
        if self.arrival is not None and sorted(self.arrival) != sorted(ids):
            raise ValueError("arrival does not list every session once")
        return self


class Scenario(Story):
    """A story and its gold."""

    gold: Gold

    def story(self) -> Story:
        """Return the scenario without its gold."""
        return Story(id=self.id, user_id=self.user_id, sessions=self.sessions, arrival=self.arrival)


def read_scenarios(paths: Sequence[Path]) -> list[Scenario]:
    """Return the scenarios of these files, and of the `*.json` files of these folders, by name.

    Raises `SourceInvalid`, naming the file and the place, where one cannot be read: a scenario that were left out
    would not lower any figure.
    """
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        raise SourceInvalid(f"no scenario (*.json) at {', '.join(map(str, paths))}; see docs/quality.md for the format")
    found = [_read(file) for file in files]
    twice = [name for name, count in Counter(one.id for one in found).items() if count > 1]
    if twice:
        raise SourceInvalid(f"two files hold a scenario with the id {twice[0]!r}; give each an id of its own")
    return found


def _read(file: Path) -> Scenario:
    try:
        return Scenario.model_validate_json(file.read_bytes())
    except OSError as error:
        raise SourceInvalid(f"{file} cannot be read ({error.strerror}); give a scenario or a folder of them") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise SourceInvalid(f"{file} is no scenario: at {where}: {first['msg']}") from None
