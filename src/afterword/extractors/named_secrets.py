"""Secrets that a model names in its answer, which no pattern has recognised, and masking them. Pure.

A model may be wrong or misled. So only a few words that stand in the cited turn are masked, and each mask is counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.quote_search import find_quote
from afterword.extractors.transcript_union import common_stretches
from afterword.facts.transcripts import Turn
from afterword.normal_form import composed
from afterword.privacy.redaction import MASK, mask_for
from afterword.privacy.secret_values import is_distinct
from afterword.privacy.state_keys import NEVER_MASKED

NAMED_SECRET = mask_for("named secret")
MOST_NAMED = 20
"""How many secrets of one session a model may name."""

_SHORTEST, _LONGEST, _MOST_WORDS = 4, 200, 4
_FEWEST_LETTERS_AROUND = 12
_SHORTEST_PART = 20
"""A string of a saved state with so many characters is a part of a turn if it stands in its text."""
_DEEPEST_JSON = 3
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class NamedSecrets:
    """The secrets that a model has named in one session. `refused` counts those that are not masked."""

    def __init__(self) -> None:
        self.refused = 0
        self._turns_by_text: dict[str, set[int]] = {}
        self._patterns: dict[int | None, re.Pattern[str] | None] = {}

    def add(self, citations: Iterable[Citation], turns: Iterable[Turn]) -> None:
        """Add the secrets that really stand in the cited turns, as far as they may be masked."""
        texts = {turn.number: turn.text for turn in turns}
        for citation in citations:
            secret = find_quote(citation.quote, texts.get(citation.turn, ""))
            if MASK.search(citation.quote) or (secret is not None and citation.turn in self._turns_of(secret)):
                continue
            is_new = secret is not None and secret not in self._turns_by_text
            is_one_too_many = is_new and len(self._turns_by_text) >= MOST_NAMED
            if secret is None or is_one_too_many or not _may_be_masked(secret, texts[citation.turn]):
                self.refused += 1
                continue
            self._turns_by_text.setdefault(secret, set()).add(citation.turn)
            self._patterns.clear()

    def __len__(self) -> int:
        return len(self._turns_by_text)

    def counts(self) -> dict[str, int]:
        """Return the numbers for the record of a run, none if no secret was named."""
        counts = {"named_secrets": len(self), "named_secrets_not_masked": self.refused}
        return {name: number for name, number in counts.items() if number}

    def masked_turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return the turns without these secrets. One that could be a plain word is masked in its own turn only."""
        if not len(self):
            return tuple(turns)
        return tuple(
            turn if (text := self._masked(turn.text, turn.number)) == turn.text else replace(turn, text=text)
            for turn in turns
        )

    def masked_candidates(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return the candidates without these secrets."""
        return [self._masked_candidate(candidate) for candidate in candidates] if len(self) else list(candidates)

    def _masked_candidate(self, candidate: Candidate) -> Candidate:
        names = ("value", "statement", "subject", "attribute", "limited_to", "outcome", "former_name")
        texts: Mapping[str, str | None] = {name: getattr(candidate, name) for name in names}
        fields: dict[str, object] = {name: text and self._masked(text, None) for name, text in texts.items()}
        fields["evidence"] = [
            Citation(turn=citation.turn, quote=self._masked(citation.quote, citation.turn))
            for citation in candidate.evidence
        ]
        return candidate.model_copy(update=fields)

    def _turns_of(self, secret: str) -> set[int]:
        return self._turns_by_text.get(secret, set())

    def _masked(self, text: str, turn: int | None) -> str:
        if turn not in self._patterns:
            secrets = [
                secret
                for secret, turns in self._turns_by_text.items()
                if turn is None or turn in turns or is_distinct(secret)
            ]
            self._patterns[turn] = _pattern(secrets) if secrets else None
        pattern = self._patterns[turn]
        return pattern.sub(lambda match: match["mask"] or NAMED_SECRET, text) if pattern else text


def masked_again(fresh: Sequence[Turn], stored: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return freshly read turns without the secrets that were masked in them when they were stored.

    A stored turn shows where its secrets stood, so nothing else about them need be kept.
    """
    if not any(NAMED_SECRET in turn.text for turn in stored):
        return tuple(fresh)
    turns, secrets = list(fresh), set[str]()
    for is_equal, *bounds in common_stretches(stored, fresh):
        for place in range(bounds[0], bounds[1]) if not is_equal else ():
            earlier = stored[place]
            for index in _possible_places(place, earlier, *bounds) if NAMED_SECRET in earlier.text else ():
                hidden = _hidden_words(earlier.text, fresh[index].text)
                if hidden is not None and earlier.speaker == fresh[index].speaker:
                    secrets.update(secret for secret in hidden if is_distinct(secret))
                    turns[index] = replace(turns[index], text=earlier.text)
                    break
    if not secrets:
        return tuple(turns)
    pattern = _pattern(secrets)
    return tuple(
        replace(turn, text=pattern.sub(lambda match: match["mask"] or NAMED_SECRET, turn.text)) for turn in turns
    )


def mask_named_in_state(state: Mapping[str, Any], masked_texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a saved state without the secrets that were masked in turns.

    `masked_texts` maps the texts of these turns to the masked texts. A secret that could be a plain word is masked in
    the text of its turn only.
    """
    hidden = {text: words for text, masked in masked_texts.items() if (words := _hidden_words(masked, text))}
    distinct = {word for words in hidden.values() for word in words if is_distinct(word)}

    def mask(text: str) -> str:
        is_part = len(text) >= _SHORTEST_PART
        own = {
            word
            for turn, words in hidden.items()
            if composed(text) == turn or (is_part and text in turn)
            for word in words
        }
        secrets = own | distinct
        return _pattern(secrets).sub(lambda match: match["mask"] or NAMED_SECRET, text) if secrets else text

    return {name: _with_masked_strings(value, mask, name) for name, value in state.items()}


def _with_masked_strings(value: Any, mask: Callable[[str], str], key: str = "", depth: int = 0) -> Any:
    """Return a value of a state with its strings masked. JSON in a string stays valid. Names and ids are left."""
    if isinstance(value, Mapping):
        return {name: _with_masked_strings(inner, mask, str(name), depth) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_masked_strings(inner, mask, key, depth) for inner in value]
    if not isinstance(value, str) or key in NEVER_MASKED:
        return value
    if value[:1] in ("{", "[") and depth < _DEEPEST_JSON:
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return mask(value)
        masked = _with_masked_strings(parsed, mask, "", depth + 1)
        return value if masked == parsed else json.dumps(masked, ensure_ascii=False)
    return mask(value)


def _possible_places(place: int, earlier: Turn, start: int, end: int, new_start: int, new_end: int) -> list[int]:
    """Return where a stored turn may stand in a new reading, the likeliest place first.

    It stands between the same turns as before. Turns beside it may be missing in the new reading, or be new. A turn
    that is little else than masks is only looked for at the same distance from its neighbours: it would fit many turns.
    """
    likely = new_start + place - start, new_end - (end - place)
    has_words = len(earlier.text.replace(NAMED_SECRET, "")) >= _FEWEST_LETTERS_AROUND
    places = dict.fromkeys((*likely, *(range(new_start, new_end) if has_words else ())))
    return [index for index in places if new_start <= index < new_end]


def _hidden_words(masked: str, text: str) -> list[str] | None:
    """Return the words that another text has masked, None if the texts differ in anything but masks."""
    first, *others = masked.split(NAMED_SECRET)
    if not text.startswith(first) or not text.endswith(others[-1]):
        return None
    hidden, place = [], len(first)
    for number, part in enumerate(others, 1):
        end = len(text) - len(part) if number == len(others) else text.find(part, place + 1)
        if end < place + _SHORTEST or end - place > _LONGEST:
            return None
        hidden.append(text[place:end])
        place = end + len(part)
    return hidden


def _may_be_masked(secret: str, text: str) -> bool:
    """Return whether words of a turn may be a secret: few of them, not one plain word, and no part of a word."""
    is_plain_word = _PLAIN_WORD.fullmatch(secret) is not None and secret.islower()
    is_bounded = _SHORTEST <= len(secret) <= _LONGEST and len(secret.split()) <= _MOST_WORDS
    return is_bounded and not is_plain_word and any(not match["mask"] for match in _pattern([secret]).finditer(text))


def _pattern(secrets: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(secrets, key=lambda secret: (-len(secret), secret))
    # In JSON the letter before a word may be that of a line break.
    begin = r"(?:(?<!\w)|(?<=\\[nrt]))"
    return re.compile(rf"(?P<mask>{MASK.pattern})|{begin}(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
