"""Find the turns of a scope that match a question, whether or not a fact cites them. Pure.

An agent is shown only the speaker's own words of a turn, and no turn with a command to an assistant.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice

import numpy

from afterword.facts.transcripts import SourceTurn, TurnPlace
from afterword.facts.words import terms
from afterword.privacy.foreign.stretches import FILLER, fill_foreign_stretches, foreign_stretches
from afterword.privacy.normalisation import undisguised_text
from afterword.privacy.prompt_injection import commands_assistant
from afterword.recall.block import MatchingTurn
from afterword.recall.bm25 import NO_RELATED, Related
from afterword.recall.questions import question_terms
from afterword.recall.ranking import WEIGHTS, SearchIndex
from afterword.recall.unit_table import UnitTable
from afterword.recall.vectors import Nearness

_LEFT_OUT = "[…]"
_FILLED = re.compile(f"{FILLER}+")

CHECKS = "2:"
"""The version of the checks. A stored result of the checks begins with it; that of another version is not used."""
_WHOLE, _CHANGED = "=", "+"

MOST_CANDIDATES, MOST_REPEATED = 80, 400
"""How many turns with different words are compared with a question, and how many with those of equal words."""
_NO_PLACES = numpy.empty(0, dtype=int)
LEAST_COVERAGE = 0.1
"""A turn matches a question if it contains this share of the weight of the question's rarest words."""
RAREST = 8
"""The number of words of a question that are compared: its rarest ones."""
ANSWER = 0.8
"""The share of a question's score that the answer of another person gets."""
SHORT = 8
"""A turn of at most this many words may need the turn before it to be understood."""
_POINTS_BACK = re.compile(
    r"^\W*(?:yes|yeah|yep|no|nope|ok|okay|sure|right|exactly|agreed|deal|that|this|it|those|these|the (?:first|second|"
    r"last|latter|former)|same|ja|nein|genau|si|sí|no|oui|non|exact|sim|nee)\b",
    re.IGNORECASE,
)


def shown_text_to_store(speaker: str, text: str) -> str:
    """Return the stored result of the checks of a turn: whether an agent is shown it, and its text if that differs."""
    own = _FILLED.sub(_LEFT_OUT, fill_foreign_stretches(text, foreign_stretches(text, (speaker,))))
    if commands_assistant(own) or not any(sign.isalnum() for sign in own):
        return CHECKS
    shown = undisguised_text(own)
    return f"{CHECKS}{_WHOLE}" if shown == text else f"{CHECKS}{_CHANGED}{shown}"


def turn_as_shown(turn: SourceTurn) -> SourceTurn | None:
    """Return a turn as an agent is shown it, or None if nothing of it may be shown.

    Pasted stretches become `[…]`. A turn with a command to an assistant is not shown at all.
    """
    stored = turn.shown
    if stored is None or not stored.startswith(CHECKS):
        stored = shown_text_to_store(turn.speaker, turn.text)
    form = stored[len(CHECKS) :]
    if form == _WHOLE:
        return turn
    return replace(turn, text=form[len(_CHANGED) :], shown=None) if form else None


IsHidden = Callable[[SourceTurn, frozenset[str]], bool]
"""Says whether a turn with these words must not be shown."""


class SaidIndex:
    """Searches the turns of a table by their words.

    `before` holds the turn before each turn, by the session and number of the latter.
    """

    def __init__(self, table: UnitTable, before: Mapping[str, Mapping[int, SourceTurn]]) -> None:
        self.table = table
        self.before = before
        self._search = SearchIndex(table, table.is_alive)
        self._words: dict[int, frozenset[str]] = {}
        self._utterance_hashes: dict[int, int] = {}
        self._served: dict[TurnPlace, SourceTurn | None] = {}

    def matching_turns(
        self,
        question: str,
        *,
        at: datetime,
        is_hidden: IsHidden,
        related: Related = NO_RELATED,
    ) -> Iterator[MatchingTurn]:
        """Yield the turns that match a question, best first. `related` are the words related to those of the question.

        Left out are turns from after `at`, turns that are hidden, and turns that read like an instruction to an
        assistant. Of turns with equal words and equal context the latest is yielded.
        """
        wanted = question_terms(question) if self.turn_count else frozenset[str]()
        search = _QuestionSearch(self, self._rarest_word_weights(wanted), related, at, is_hidden)
        if not search.needed:
            return
        scores = dict(self._ranked_places(question, search.shown_question_before, related))
        equal: dict[int, list[int]] = defaultdict(list)
        for place in scores:
            equal[self._utterance_hash(place)].append(place)
        for places in equal.values():
            found = [turn for place in places if (turn := search.matching_turn(place, scores[places[0]]))]
            yield from _latest_with_each_context(found)

    def shown_turns(self, session_id: str, *, at: datetime, is_hidden: IsHidden) -> Iterator[SourceTurn]:
        """Yield the turns of a session as an agent is shown them, in order.

        Turns that `matching_turns` leaves out are left out here too.
        """
        places = self.table.turn_places(session_id)
        for place in sorted(places, key=lambda place: self.table.unit_at(place).number):
            shown = self._shown_turn(self.table.unit_at(place).turn, self._words_of(place), at, is_hidden)
            if shown is not None:
                yield shown

    @property
    def turn_count(self) -> int:
        """The number of turns."""
        return len(self.table.by_order)

    @property
    def cached_word_count(self) -> int:
        """The number of words whose weights are cached."""
        return self._search.cached_word_count

    def _words_of(self, place: int) -> frozenset[str]:
        words = self._words.get(place)
        if words is None:
            words = self._words[place] = frozenset(self.table.unit_at(place).terms.split())
        return words

    def _rarest_word_weights(self, wanted: frozenset[str]) -> dict[str, float]:
        frequencies = {word: int(self.table.is_alive[self.table.counts(word)[0]].sum()) for word in wanted}
        rarities = {word: math.log(1 + self.turn_count / (1 + frequency)) for word, frequency in frequencies.items()}
        rarest = sorted(rarities, key=lambda word: (-rarities[word], word))[:RAREST]
        return {word: rarities[word] for word in rarest}

    def _question_before(self, place: int) -> int | None:
        """Return the place of the turn just before this one if another person asks in it, else None."""
        table, rank = self.table, int(self.table.rank[place])
        before = int(table.by_order[rank - 1]) if rank else place
        if not table.asks[before] or table.name[before] == table.name[place]:
            return None
        is_next = table.conversation[before] == table.conversation[place]
        return before if is_next and table.number[before] == table.number[place] - 1 else None

    def _ranked_places(
        self, question: str, asked_before: Callable[[int], int | None], related: Related
    ) -> list[tuple[int, float]]:
        """Return the places of the turns that match, best first, each with its score.

        If a turn that matches asks something, the answer in the next turn matches too, whatever its words.
        """
        meaning = Nearness(numpy.zeros(self.table.size), _NO_PLACES, related) if related else None
        scores = self._best_of_different_words(
            self._search.ranked_places(question, meaning=meaning, most=MOST_REPEATED)
        )
        for place, score in [(place, score) for place, score in scores.items() if self.table.asks[place]]:
            after = int(self.table.rank[place]) + 1
            answer = int(self.table.by_order[after]) if after < len(self.table.by_order) else place
            if asked_before(answer) == place:
                scores[answer] = max(scores.get(answer, 0.0), ANSWER * (score + WEIGHTS.asking))
        return sorted(scores.items(), key=lambda scored: (-scored[1], self.table.rank[scored[0]]))

    def _best_of_different_words(self, scores: dict[int, float]) -> dict[int, float]:
        """Return the best of these scores, with at most `MOST_CANDIDATES` places that differ in their words."""
        different: set[int] = set()
        for number, place in enumerate(scores):
            different.add(self._utterance_hash(place))
            if len(different) > MOST_CANDIDATES:
                return dict(islice(scores.items(), number))
        return scores

    def _utterance_hash(self, place: int) -> int:
        """Return a hash of the speaker and the words of a turn, without letter case and white space."""
        known = self._utterance_hashes.get(place)
        if known is None:
            turn = self.table.unit_at(place).turn
            known = self._utterance_hashes[place] = hash((turn.speaker, *turn.text.casefold().split()))
        return known

    def _shown_turn(
        self, turn: SourceTurn, words: frozenset[str], at: datetime, is_hidden: IsHidden
    ) -> SourceTurn | None:
        """Return a turn as an agent is shown it, or None if it must not be shown."""
        if (turn.said_at is not None and turn.said_at > at) or is_hidden(turn, words):
            return None
        if turn.place not in self._served:
            self._served[turn.place] = turn_as_shown(turn)
        return self._served[turn.place]

    def _context_turn(
        self, turn: SourceTurn, words: frozenset[str], at: datetime, is_hidden: IsHidden
    ) -> SourceTurn | None:
        """Return the turn before this one if this one is short or refers back, and if the turn before may be shown."""
        before = self.before.get(turn.session_id, {}).get(turn.number)
        if before is None or (len(words) > SHORT and not _POINTS_BACK.match(turn.text)):
            return None
        return self._shown_turn(before, frozenset(terms(before.text)), at, is_hidden)


class _QuestionSearch:
    """The search for the turns that match one question, of those that may be shown at an instant.

    `needed` is the least weight of the question's words that a turn must contain.
    """

    def __init__(
        self, index: SaidIndex, weights: Mapping[str, float], related: Related, at: datetime, is_hidden: IsHidden
    ) -> None:
        self.needed = LEAST_COVERAGE * sum(weights.values())
        self._index, self._weights, self._related, self._at, self._is_hidden = index, weights, related, at, is_hidden

    def matching_turn(self, place: int, score: float) -> MatchingTurn | None:
        """Return a turn with its context, None if it does not match or must not be shown."""
        words = self._index._words_of(place)
        asking = None if self._covers(words) else self.shown_question_before(place)
        if not self._covers(words if asking is None else words | self._index._words_of(asking)):
            return None
        turn = self._shown(place)
        if turn is None:
            return None
        if asking is not None:
            return MatchingTurn(turn, self._shown(asking), score)
        return MatchingTurn(turn, self._index._context_turn(turn, words, self._at, self._is_hidden), score)

    def shown_question_before(self, place: int) -> int | None:
        """Return the place of the question that a turn answers, None if there is none that may be shown."""
        # A question that must not be shown brings no answer either, because the answer would reveal its topic.
        asking = self._index._question_before(place)
        return asking if asking is not None and self._shown(asking) is not None else None

    def _covers(self, words: frozenset[str]) -> bool:
        return _matched_weight(self._weights, words, self._related) >= self.needed

    def _shown(self, place: int) -> SourceTurn | None:
        turn, words = self._index.table.unit_at(place).turn, self._index._words_of(place)
        return self._index._shown_turn(turn, words, self._at, self._is_hidden)


def _latest_with_each_context(turns: Iterable[MatchingTurn]) -> Iterator[MatchingTurn]:
    """Yield the latest of the turns with an equal context, the latest first."""
    contexts: set[str | None] = set()
    for turn in sorted(turns, key=lambda each: each.order, reverse=True):
        context = turn.context.text if turn.context is not None else None
        if context not in contexts:
            contexts.add(context)
            yield turn


def _matched_weight(weights: Mapping[str, float], words: frozenset[str], related: Related) -> float:
    """Return the weight of the words of a question that a text contains, or of which it contains a related word."""
    total = 0.0
    for word, weight in weights.items():
        likeness = max((like for other, like in related.get(word, {}).items() if other in words), default=0.0)
        total += weight * (1.0 if word in words else WEIGHTS.related * likeness)
    return total
