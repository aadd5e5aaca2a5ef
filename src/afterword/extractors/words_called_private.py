"""Hide secrets and off-the-record turns that a model has named and that no pattern has recognised. Pure.

A model may be wrong or misled. So only short secrets that stand in the cited turn are masked, only turns of people are
hidden, and only a limited number of both. Everything that the model names is counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from afterword.extractors.candidates import Candidate, Citation, mask_candidate
from afterword.extractors.extractor import Extraction
from afterword.extractors.quote_search import find_quote
from afterword.extractors.transcript_assembly import diff_turns
from afterword.facts.sequence_diff import LARGEST_COMPARED
from afterword.facts.transcripts import Role, Turn
from afterword.normal_form import composed
from afterword.privacy.off_record import hide_off_record, hide_off_record_in_state, is_off_record
from afterword.privacy.policy import Privacy
from afterword.privacy.record_requests import HIDDEN, Markers
from afterword.privacy.redaction import MASK, mask_for
from afterword.privacy.secret_values import is_safe_to_mask_everywhere
from afterword.privacy.state_keys import NEVER_MASKED

NAMED_SECRET = mask_for("named secret")
MOST_NAMED = MOST_OFF_RECORD = 20
"""How many secrets, and how many turns off the record, a model may name in one session."""

_SHORTEST, _LONGEST, _MOST_WORDS = 4, 200, 4
_SEED_LENGTHS = (12, 15, 18, 21, 24)
_SEED_WORDS = re.compile(r"[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8})+")
"""How many words a seed phrase has, which restores a crypto wallet (BIP-39), and their form.

A sentence of that length mostly has shorter words, too.
"""
_FEWEST_LETTERS_AROUND = 12
_SHORTEST_PART = 20
"""A string of a saved state that is shorter than this is not taken for a part of a turn, even if a turn contains it."""
_MOST_SEARCHED = 100
"""A word that was masked in more turns than this is masked in every longer string. The turns are not searched."""
_DEEPEST_JSON = 3
_MASKS = re.compile(rf"{re.escape(NAMED_SECRET)}(?:\W{{1,3}}{re.escape(NAMED_SECRET)})*")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class WordsCalledPrivate:
    """The secrets, and the turns off the record, that a model has named in one session.

    `refused` counts the named secrets that are not masked.
    """

    def __init__(self, privacy: Privacy) -> None:
        self.refused: int = 0
        self._privacy = privacy
        self._turns_by_text: dict[str, set[int]] = {}
        self._patterns: dict[int | None, re.Pattern[str]] = {}
        self._off_record: set[int] = set()
        self._not_hidden: set[int] = set()

    def add(self, extraction: Extraction, turns: Sequence[Turn]) -> None:
        """Add what the model has named in these turns, unless it must not be hidden or hiding is turned off."""
        if self._privacy.kinds:
            self._add_secrets(extraction.secrets, turns)
        if self._privacy.markers.off:
            self._add_off_record(extraction.off_record, turns)

    def _add_off_record(self, numbers: Collection[int], turns: Sequence[Turn]) -> None:
        # If a turn holds a secret, the wish is about the secret: "the code is [redacted: code], don't write it down".
        with_secrets = {turn.number for turn in turns if MASK.search(turn.text)}.union(*self._turns_by_text.values())
        by_people = {turn.number for turn in turns if turn.role is Role.HUMAN} - with_secrets
        new = sorted(by_people.intersection(numbers) - self._off_record)[: MOST_OFF_RECORD - len(self._off_record)]
        self._off_record.update(new)
        self._not_hidden.update(set(numbers) - self._off_record)

    def _add_secrets(self, citations: Iterable[Citation], turns: Iterable[Turn]) -> None:
        texts = {turn.number: turn.text for turn in turns}
        for citation in citations:
            secret = find_quote(citation.quote, texts.get(citation.turn, ""))
            if MASK.search(citation.quote) or citation.turn in self._turns_by_text.get(secret or "", ()):
                continue
            is_one_too_many = secret not in self._turns_by_text and len(self._turns_by_text) >= MOST_NAMED
            if secret is None or is_one_too_many or not _may_be_masked(secret, texts[citation.turn]):
                self.refused += 1
                continue
            self._turns_by_text.setdefault(secret, set()).add(citation.turn)
            self._patterns.clear()

    def counts(self) -> dict[str, int]:
        """Return the counts to store with a run, by name, without those that are zero."""
        counts = {
            "named_secrets": len(self._turns_by_text),
            "named_secrets_not_masked": self.refused,
            "named_off_record": len(self._off_record),
            "named_off_record_not_hidden": len(self._not_hidden),
        }
        return {name: number for name, number in counts.items() if number}

    def hide_in_turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return the turns with secrets masked and off-the-record turns hidden, together with the answers to them.

        A secret that could be a plain word is masked only in the turns for which the model named it.
        """
        if self._turns_by_text:
            turns = [replace(turn, text=self._masked_text(turn.text, turn.number)) for turn in turns]
        if self._off_record:
            return hide_off_record(turns, self._privacy.markers, also_hidden_numbers=self._off_record)
        return tuple(turns)

    def mask_in_candidate(self, candidate: Candidate) -> Candidate:
        """Return the candidate with all secrets masked: those of the patterns, and those that the model named."""
        candidate = mask_candidate(candidate, self._privacy)
        names = ("value", "statement", "subject", "attribute", "limited_to", "outcome", "former_name")
        fields: dict[str, object] = {
            name: self._masked_text(text, None) for name in names if (text := getattr(candidate, name))
        }
        fields["evidence"] = [
            Citation(turn=citation.turn, quote=self._masked_text(citation.quote, citation.turn))
            for citation in candidate.evidence
        ]
        return candidate.model_copy(update=fields)

    def _masked_text(self, text: str, turn: int | None) -> str:
        if turn not in self._patterns:
            secrets = [
                secret
                for secret, turns in self._turns_by_text.items()
                if turn is None or turn in turns or is_safe_to_mask_everywhere(secret)
            ]
            self._patterns[turn] = _secrets_pattern(secrets)
        return self._patterns[turn].sub(_mask_match, text)


def hide_as_stored(
    new_turns: Sequence[Turn],
    stored_turns: Sequence[Turn],
    markers: Markers,
    off_record_places: Collection[int] | None = None,
) -> tuple[Turn, ...]:
    """Mask and hide again in new turns what a model had named as private in the stored turns. Return the new turns.

    A saved session that has grown is read again, and its file still has the words. A stored turn shows where secrets
    were masked. `off_record_places` are the indexes of the new turns that are known to be off the record. Without it,
    these are looked for at the places where stored turns are off the record. New turns that have lost the request
    before them are off the record too.
    """
    if not off_record_places and not any(NAMED_SECRET in turn.text or is_off_record(turn) for turn in stored_turns):
        return tuple(new_turns)
    new_turns = hide_after_lost_turns(new_turns, stored_turns, markers)
    hiding = _HidingAsStored(new_turns, stored_turns, finds_off_record=off_record_places is None)
    hiding.take_off_record(off_record_places or ())
    for is_equal, *bounds in diff_turns(stored_turns, new_turns):
        if not is_equal:
            hiding.hide_changed_turns(*bounds)
    return hiding.hidden_turns(markers)


class _HidingAsStored:
    """Finds the words in new turns that are masked or hidden in stored turns, and hides them too.

    With `finds_off_record`, the turns that are off the record are also found by the stored turns.
    """

    def __init__(self, new_turns: Sequence[Turn], stored_turns: Sequence[Turn], *, finds_off_record: bool) -> None:
        self._new_turns, self._stored_turns, self._finds_off_record = new_turns, stored_turns, finds_off_record
        self._turns = list(new_turns)
        self._unmatched: set[int] = set()
        self._secrets: set[str] = set()
        self._off_record: set[int] = set()

    def take_off_record(self, places: Iterable[int]) -> None:
        """Take the turns at these places off the record, unless they are off it already."""
        for place in places:
            if not is_off_record(self._new_turns[place]):
                self._hide(place, HIDDEN, is_off_record=self._new_turns[place].role is Role.HUMAN)

    def hide_changed_turns(self, start: int, end: int, new_start: int, new_end: int) -> None:
        """Hide new turns like the stored turns that stand between the same equal turns."""
        self._unmatched.update(range(new_start, new_end))
        for place in range(start, end):
            earlier = self._stored_turns[place]
            is_hidden = self._finds_off_record and is_off_record(earlier)
            if is_hidden or NAMED_SECRET in earlier.text:
                places = _possible_places(place, earlier, start, end, new_start, new_end)
                self._hide_first_match(earlier, places, is_hidden=is_hidden)

    def hidden_turns(self, markers: Markers) -> tuple[Turn, ...]:
        """Return all new turns. Secrets that were found are also masked in the turns that are like no stored turn."""
        pattern = _secrets_pattern(self._secrets)
        for place in self._unmatched:
            turn = self._turns[place]
            self._turns[place] = replace(turn, text=pattern.sub(_mask_match, turn.text))
        return hide_off_record(self._turns, markers, self._off_record) if self._off_record else tuple(self._turns)

    def _hide_first_match(self, earlier: Turn, places: Iterable[int], *, is_hidden: bool) -> None:
        """Hide the first of the new turns at these places that may be the stored turn."""
        for place in places:
            later = self._new_turns[place]
            if place not in self._unmatched or earlier.speaker != later.speaker:
                continue
            words = set[str]() if is_hidden else _hidden_words(earlier.text, later.text)
            if words is not None:
                self._secrets.update(filter(is_safe_to_mask_everywhere, words))
                self._unmatched.discard(place)
                self._hide(place, earlier.text, is_off_record=is_hidden and earlier.role is Role.HUMAN)
                return

    def _hide(self, place: int, hidden_text: str, *, is_off_record: bool) -> None:
        """Take a turn off the record, or give it the text in which its words are hidden."""
        if is_off_record:
            self._off_record.add(self._new_turns[place].number)
        else:
            self._turns[place] = replace(self._turns[place], text=hidden_text)


def hide_after_lost_turns(
    new_turns: Sequence[Turn], stored_turns: Sequence[Turn], markers: Markers
) -> tuple[Turn, ...]:
    """Hide new turns that are off the record because of stored turns that a short context has lost. Return them all."""
    lost = _turns_lost_from_context(new_turns, stored_turns) if any(map(is_off_record, stored_turns)) else ()
    return hide_off_record((*lost, *new_turns), markers)[len(lost) :] if lost else tuple(new_turns)


def _turns_lost_from_context(new_turns: Sequence[Turn], stored_turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return the stored turns that a short context has lost: those before the turn with which the new turns begin.

    The new turns begin with the first stored turn or with a later one. Some stored turns are hidden, and cannot be
    compared. If no stored turn fits the new ones, all are lost. Turns that nobody said are left out, because programs
    move them.
    """
    new, old = ([turn for turn in turns if turn.is_said] for turns in (new_turns, stored_turns))
    if all(map(_is_same, old, new)):
        return ()
    first = max(0, len(old) - LARGEST_COMPARED // (len(new) + 1))
    places = [place for place in range(first, len(old) + 1) if all(map(_may_be_same, islice(old, place, None), new))]
    return old[: max(places, key=lambda place: (sum(map(_is_same, old[place:], new)), place))]


def _is_same(earlier: Turn, later: Turn) -> bool:
    return (earlier.speaker, earlier.text) == (later.speaker, later.text)


def _may_be_same(earlier: Turn, later: Turn) -> bool:
    return _is_same(earlier, later) or (earlier.text == HIDDEN and earlier.speaker == later.speaker)


def hide_in_state(
    state: Mapping[str, Any], masked_texts: Mapping[str, str], humans: Collection[str], markers: Markers
) -> dict[str, Any]:
    """Return a saved state without the texts that were masked or hidden in the turns that were read from it.

    `masked_texts` maps the original texts of turns to their masked texts. A string that equals an original text is
    replaced by the masked one. In other strings, a secret that could be a plain word is only masked if the string is a
    part of a turn with that secret. Off-the-record messages of `humans` are hidden with the answers to them.
    """
    off_record = {text for text, masked in masked_texts.items() if masked == HIDDEN}
    if off_record:
        state = hide_off_record_in_state(state, markers, humans, off_record)
    masking = _StateMasking(masked_texts)
    return {name: _with_masked_strings(value, masking.mask, name) for name, value in state.items()}


class _StateMasking:
    """Masks strings of a saved state like the turns that were read from it."""

    def __init__(self, masked_texts: Mapping[str, str]) -> None:
        self._masked_texts = masked_texts
        self._turns_by_word: dict[str, list[str]] = {}
        for text, masked in masked_texts.items():
            for word in (_hidden_words(masked, text) or ()) if masked != text else ():
                self._turns_by_word.setdefault(word, []).append(text)

    def mask(self, text: str) -> str:
        """Return a string with the hidden words masked, unchanged if it has none."""
        plain = composed(text)
        masked = self._masked_texts.get(plain)
        if masked is None:
            secrets = [word for word in self._turns_by_word if word in plain and self._is_hidden(word, plain)]
            masked = _secrets_pattern(secrets).sub(_mask_match, plain) if secrets else plain
        return text if masked == plain else masked

    def _is_hidden(self, word: str, text: str) -> bool:
        """Return whether a word is a secret in this text, and no plain word that is a secret elsewhere."""
        if is_safe_to_mask_everywhere(word):
            return True
        turns = self._turns_by_word[word]
        return len(text) >= _SHORTEST_PART and (len(turns) > _MOST_SEARCHED or any(text in turn for turn in turns))


def _with_masked_strings(value: Any, mask: Callable[[str], str], key: str = "", depth: int = 0) -> Any:
    """Return a value of a state with its strings masked. JSON in a string stays valid. Keys and ids are not masked."""
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


def _possible_places(place: int, earlier: Turn, start: int, end: int, new_start: int, new_end: int) -> Iterable[int]:
    """Yield the places in a new reading where a stored turn may stand, the likeliest first.

    `start` and `end` are the bounds between equal turns in the old reading, `new_start` and `new_end` those in the new
    one. A turn that is little else than masks would match many turns, so it is only looked for at the same distance
    from these bounds.
    """
    likely = new_start + place - start, new_end - (end - place)
    has_words = len(earlier.text.replace(NAMED_SECRET, "")) >= _FEWEST_LETTERS_AROUND
    places = chain(likely, range(new_start, new_end) if has_words else ())
    return (index for index in places if new_start <= index < new_end)


def _hidden_words(masked: str, text: str) -> set[str] | None:
    """Return the words of `text` that `masked` may hide, or None if the two texts differ in more than masks.

    Where masks stand side by side, a secret may contain their separator, so every run of the words may be a secret.
    """
    if not text.startswith(masked.partition(NAMED_SECRET)[0]) or not text.endswith(masked.rpartition(NAMED_SECRET)[2]):
        return None
    (first, *others), hidden = _MASKS.split(masked), set[str]()
    place = len(first)
    for number, (masks, part) in enumerate(zip(_MASKS.findall(masked), others, strict=True), 1):
        end = len(text) - len(part) if number == len(others) else text.find(part, place + _SHORTEST)
        _, *separators, _ = masks.split(NAMED_SECRET)
        if not _SHORTEST <= end - place <= _LONGEST * (len(separators) + 1):
            return None
        separator = "|".join(map(re.escape, sorted(set(separators), reverse=True)))
        words = re.split(f"({separator})", text[place:end]) if separators else [text[place:end]]
        longest = 1 if len(words) == 2 * len(separators) + 1 else 2 * _MOST_WORDS
        for start in range(0, len(words), 2):
            hidden.update("".join(words[start : start + length]) for length in range(1, longest + 1, 2))
        place = end + len(part)
    return {words for words in hidden if len(words) >= _SHORTEST}


def _may_be_masked(secret: str, text: str) -> bool:
    """Return whether the words may be a secret: a few words, a number or a seed phrase, but no single plain word."""
    is_plain_word = _PLAIN_WORD.fullmatch(secret) is not None and secret.islower()
    words = secret.split()
    is_phrase = len(words) in _SEED_LENGTHS and _SEED_WORDS.fullmatch(secret) is not None
    is_number = 2 * sum(any(map(str.isdigit, word)) for word in words) > len(words)
    is_bounded = _SHORTEST <= len(secret) <= _LONGEST and (len(words) <= _MOST_WORDS or is_number or is_phrase)
    return (
        is_bounded
        and not is_plain_word
        and any(not match["mask"] for match in _secrets_pattern([secret]).finditer(text))
    )


def _secrets_pattern(secrets: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(secrets, key=lambda secret: (-len(secret), secret))
    # In JSON the letter before a word may be that of a line break.
    begin = r"(?:(?<!\w)|(?<=\\[nrt]))"
    words = "|".join(map(re.escape, longest_first)) or "(?!)"
    return re.compile(rf"(?P<mask>{MASK.pattern})|{begin}(?:{words})(?!\w)")


def _mask_match(match: re.Match[str]) -> str:
    return match["mask"] or NAMED_SECRET
