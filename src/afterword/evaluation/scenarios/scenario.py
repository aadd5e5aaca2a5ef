"""Scenarios: conversations over several sessions, with the gold facts that a careful reader would store.

The pipeline sees only the `Story`. Only the scorer sees the gold, so `Scenario.story` leaves it out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from afterword.facts.assertions import Kind
from afterword.pipeline.errors import SourceInvalid

MessageRole = Literal["user", "assistant", "system", "memory", "tool_call", "tool_result", "thought"]
Container = Literal["assistant", "round_robin", "selector", "swarm", "team", "v02", "openai"]


def _checked_file_name(text: str) -> str:
    if not re.fullmatch(r"\w[\w.@+-]*", text):
        raise ValueError("must be usable as a file name: letters, digits, and . @ + - _")
    return text


def _checked_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression ({error})") from None
    return text


FileName = Annotated[str, AfterValidator(_checked_file_name)]
Keywords = Annotated[list[list[Annotated[str, AfterValidator(_checked_pattern)]]], Field(min_length=1)]
"""Groups of regular expressions, searched without regard to case. Every group needs a match of one of its members."""


class _ScenarioPart(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", frozen=True)


class Message(_ScenarioPart):
    """One message: said, thought, a tool call, a tool result, or injected text."""

    role: MessageRole
    source: str = ""
    content: str = ""
    name: str = ""
    call_id: str = ""
    arguments: dict[str, object] | str = Field(default_factory=dict)
    is_error: bool = False
    at: AwareDatetime | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments of a tool call, as the text that a model writes."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


class Session(_ScenarioPart):
    """One conversation. `container` is the kind of agent or team that took part in it."""

    session_id: FileName
    started_at: AwareDatetime
    ended_at: AwareDatetime
    container: Container
    messages: list[Message]

    @property
    def humans(self) -> list[str]:
        """The names of the people who speak in it, sorted."""
        return sorted({message.source for message in self.messages if message.role == "user"})


class GoldFact(_ScenarioPart):
    """A fact that a careful reader would store. `status` is its status after the last session."""

    id: str
    kind: Kind
    statement: str
    keywords: Keywords
    status: Literal["current", "superseded", "retracted", "expired"]
    valid_to: str | None = None


class NotFact(_ScenarioPart):
    """A statement that must not be stored as true, and the reason."""

    statement: str
    keywords: Keywords
    why: str


class Question(_ScenarioPart):
    """A question to an agent, the reference answer, the facts that it needs, and the day on which it is asked."""

    question: str
    answer: str
    needs: list[str] = []
    as_of: str | None = None


class Gold(_ScenarioPart):
    """The expected facts of a scenario, statements that must not become facts, and questions about the facts."""

    facts: list[GoldFact]
    not_facts: list[NotFact]
    questions: list[Question] = []


class Story(_ScenarioPart):
    """The part of a scenario that a pipeline may see: the user, and the sessions in the order of time.

    `arrival` lists the session ids in the order in which they reach the pipeline, if that is a different order.
    """

    id: FileName
    user_id: FileName
    sessions: list[Session] = Field(min_length=1)
    arrival: list[str] | None = None

    @model_validator(mode="after")
    def _check_session_ids(self) -> Self:
        ids = [session.session_id for session in self.sessions]
        duplicate_ids = [name for name, count in Counter(ids).items() if count > 1]
        if duplicate_ids:
            raise ValueError(f"session id {duplicate_ids[0]!r} is used twice")
        if self.arrival is not None and sorted(self.arrival) != sorted(ids):
            raise ValueError("arrival does not list every session once")
        return self

    def messages_with(self, quote: str, session_id: str | None) -> Iterator[Message]:
        """Yield the messages of people and agents in a session that contain the quote, whatever the white space."""
        words = one_line(quote)
        for session in self.sessions:
            if words and session.session_id == session_id:
                for message in session.messages:
                    if message.role in ("user", "assistant") and words in one_line(message.content):
                        yield message


class Scenario(Story):
    """A story with its gold facts."""

    gold: Gold

    def story(self) -> Story:
        """Return the scenario without its gold facts."""
        return Story(id=self.id, user_id=self.user_id, sessions=self.sessions, arrival=self.arrival)


def read_scenarios(paths: Sequence[Path]) -> list[Scenario]:
    """Return the scenarios of these files, and of the `*.json` files in these folders, sorted by name.

    Raises `SourceInvalid`, with the file and the place in it, if a file cannot be read. No file is
    skipped, because a missing scenario would go unnoticed.
    """
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        raise SourceInvalid(f"no scenario (*.json) at {', '.join(map(str, paths))}; see docs/quality.md for the format")
    scenarios = [_read_scenario(file) for file in files]
    duplicate_ids = [name for name, count in Counter(scenario.id for scenario in scenarios).items() if count > 1]
    if duplicate_ids:
        raise SourceInvalid(f"two files hold a scenario with the id {duplicate_ids[0]!r}; give each its own id")
    return scenarios


def _read_scenario(file: Path) -> Scenario:
    try:
        return Scenario.model_validate_json(file.read_bytes())
    except OSError as error:
        raise SourceInvalid(f"{file} cannot be read ({error.strerror}); give a scenario or a folder of them") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise SourceInvalid(f"{file} is not a scenario: at {where}: {first['msg']}; see docs/quality.md") from None


def one_line(text: str) -> str:
    """Return the text with each run of white space replaced by one space."""
    return " ".join(text.split())
