"""Invented sessions of users who change their minds, and a model that reads and judges them by their words alone.

What the model answers depends on the request and nothing else, so that the store that a calm run gives is the only
right one, in whatever order the sessions arrive.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.testing import Json, Reply, facts_reply, shown_pairs
from afterword.facts.assertions import Cue, Kind, SpeechAct
from afterword.facts.scopes import Scope

CITIES = ("Graz", "Linz", "Wels", "Steyr", "Villach", "Leoben", "Krems")
JOBS = ("nurse", "teacher", "baker", "welder", "pilot")
THINGS = ("chess", "sailing", "jazz", "hiking", "opera", "pottery")
UNREADABLE = "Nobody may read this."
"""What the model refuses to read until it is well."""
BEGINNING = datetime(2026, 1, 5, 9, tzinfo=UTC)

_LONG_ANSWER = "There is a lot to say about that, and most of it has been said before in other words. " * 6
_TURN = re.compile(r"^\[(\d+)\] human [^,]*\(owner\), \w+ \S+Z: (.*)$")
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_STATEMENT = re.compile(rf"\([^)]*\) {_TEXT}, (\w+): {_TEXT}(.*)")
_MANY = frozenset({"liked_activity"})


@dataclass(frozen=True, slots=True)
class Talk:
    """One invented session."""

    scope: Scope
    session_id: str
    state: dict[str, Any]
    at: datetime


def talks(users: int, sessions_each: int, seed: int) -> list[Talk]:
    """Return the sessions of so many users, in the order of time; one of them is not to be read."""
    dice = random.Random(seed)
    found = [_talk(f"user{user:02}", number, dice) for number in range(sessions_each) for user in range(users)]
    unreadable = found[len(found) // 2]
    unreadable.state["messages"][0]["content"] += f" {UNREADABLE}"
    return found


def _talk(user: str, number: int, dice: random.Random) -> Talk:
    at = BEGINNING + timedelta(days=number, minutes=dice.randrange(600))
    said = list(_said(number, dice))
    answer = _LONG_ANSWER if dice.random() < 0.3 else "Good to know."
    messages = []
    for place, text in enumerate(said):
        messages.append(_message("user", text, at + timedelta(minutes=2 * place)))
        messages.append(_message("assistant", answer, at + timedelta(minutes=2 * place + 1)))
    return Talk(Scope.user(user), f"{user}-{number}", {"messages": messages}, at)


def _message(source: str, text: str, at: datetime) -> dict[str, Any]:
    return {"source": source, "type": "TextMessage", "content": text, "created_at": at.isoformat()}


def _said(number: int, dice: random.Random) -> Iterator[str]:
    """Yield what a person says in a session: something new, a change, a correction, or something taken back."""
    city = dice.choice(CITIES)
    yield {3: f"Sorry, I meant that I live in {city}.", 4: f"I no longer live in {city}."}.get(
        number % 5, f"I live in {city} now."
    )
    if dice.random() < 0.5:
        yield f"I work as a {dice.choice(JOBS)}."
    if dice.random() < 0.4:
        yield f"My sister Ana lives in {dice.choice(CITIES)}."
    yield f"I like {dice.choice(THINGS)}. I work with {dice.choice(JOBS)}s."


def written(folder: Path, told: Sequence[Talk]) -> Path:
    """Write the sessions as files with a manifest."""
    folder.mkdir()
    manifest = []
    for one in told:
        (folder / f"{one.session_id}.json").write_text(json.dumps(one.state))
        entry = {"session_id": one.session_id, "user_id": one.scope.id, "path": f"{one.session_id}.json"}
        manifest.append(entry | {"started_at": one.at.isoformat()})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def right_reply(request: Json) -> Reply:
    """Return what a good model answers."""
    shown = request["messages"][1]["content"]
    if "<statements>" in shown:
        return Reply(json.dumps({"findings": list(_findings(shown))}))
    return facts_reply(*_candidates(shown))


def is_unreadable(request: Json) -> bool:
    """Whether the session that is not to be read stands in the request."""
    return UNREADABLE in request["messages"][1]["content"]


def _about_me(kind: Kind, attribute: str, sentence: str) -> Callable[[str], dict[str, Any]]:
    def made(value: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "subject": "user",
            "attribute": attribute,
            "value": value,
            "statement": sentence.format(value),
        }

    return made


_home = _about_me(Kind.ENTITY, "home_city", "The user lives in {}.")
_SENTENCES: Sequence[tuple[re.Pattern[str], Callable[[str], dict[str, Any]]]] = (
    (re.compile(r"I live in (\w+) now\."), _home),
    (re.compile(r"Sorry, I meant that I live in (\w+)\."), lambda city: _home(city) | {"cue": Cue.CORRECTION}),
    (
        re.compile(r"I no longer live in (\w+)\."),
        lambda city: _home(city) | {"act": SpeechAct.RETRACT, "statement": f"The user no longer lives in {city}."},
    ),
    (re.compile(r"I work as a (\w+)\."), _about_me(Kind.ENTITY, "occupation", "The user works as a {}.")),
    (re.compile(r"I like (\w+)\."), _about_me(Kind.PREFERENCE, "liked_activity", "The user likes {}.")),
    (
        re.compile(r"My sister Ana lives in (\w+)\."),
        lambda city: {**_home(city), "subject": "Ana", "statement": f"The user's sister Ana lives in {city}."},
    ),
)


def _candidates(shown: str) -> Iterator[Candidate]:
    for turn in filter(None, map(_TURN.match, shown.splitlines())):
        for pattern, values in _SENTENCES:
            for found in pattern.finditer(turn[2]):
                evidence = [Citation(turn=int(turn[1]), quote=found[0])]
                yield Candidate(**values(found[1]), evidence=evidence)


def _findings(shown: str) -> Iterator[Json]:
    """Yield a finding for each pair, by the two statements alone."""
    for number, sides in shown_pairs(shown).items():
        earlier, later = (_STATEMENT.findall(side)[0] for side in sides)
        relation = _relation(earlier, later)
        is_one = earlier[0] == later[0]
        yield {"pair": number, "reason": "as told", "relation": relation, "same_subject": is_one}


def _relation(earlier: Sequence[str], later: Sequence[str]) -> str:
    is_one_slot = tuple(earlier[:2]) == tuple(later[:2])
    is_one_value = earlier[2].split()[-1] == later[2].split()[-1]
    if "takes back" in later[3]:
        return "retracts" if is_one_slot and is_one_value else "beside"
    if not is_one_slot:
        return "beside"
    if is_one_value:
        return "same"
    if later[1] in _MANY:
        return "beside"
    # Never "corrects": what that voids depends on which of several restatements it was compared with.
    return "changes"
