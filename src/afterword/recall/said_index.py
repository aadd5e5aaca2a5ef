"""The turns of a scope, and which of them bear on a question, whether or not a fact rests on them. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import numpy

from afterword.facts.transcripts import SourceTurn, TurnPlace
from afterword.facts.words import terms
from afterword.recall.block import SaidTurn
from afterword.recall.bm25 import Postings, WordCounts, WordScores
from afterword.recall.served_turns import served_turn

MOST_CANDIDATES = 80
LEAST_COVERAGE = 0.3
"""A turn bears on a question if it holds so much of the weight of the question's rarest words."""
RAREST = 8
NEXT_TURN, TURN_BEFORE = 0.25, 0.1
"""The share of its score that a turn adds to the next one and to the one before."""
SHORT = 8
"""A turn of at most so many words may need the turn before it."""

_NOWHERE: WordCounts = (numpy.empty(0, dtype=numpy.int32), numpy.empty(0, dtype=numpy.int32))
_POINTS_BACK = re.compile(
    r"^\W*(?:yes|yeah|yep|no|nope|ok|okay|sure|right|exactly|agreed|deal|that|this|it|those|these|the (?:first|second|"
    r"last|latter|former)|same|ja|nein|genau|si|sí|no|oui|non|exact|sim|nee)\b",
    re.IGNORECASE,
)


class SaidIndex:
    """Turns of a scope, searched by their words.

    `words` holds the words that find each turn, separated by white space; `before` the turn before each, where there is
    one.
    """

    def __init__(
        self, turns: Sequence[SourceTurn], words: Sequence[str], before: Mapping[TurnPlace, SourceTurn]
    ) -> None:
        self.turns, self._words, self._before = turns, words, before
        self._postings = Postings(words)
        everything = numpy.ones(len(turns), dtype=bool)
        self._scores = WordScores(self._counts, self._postings.lengths, everything)

    def _counts(self, word: str) -> WordCounts:
        return self._postings.counts(word) or _NOWHERE

    def bearing_on(
        self, question: str, *, at: datetime, is_hidden: Callable[[SourceTurn, frozenset[str]], bool]
    ) -> Iterator[SaidTurn]:
        """Yield the turns that bear on a question, best first.

        Left out are turns from after `at`, turns that are hidden, and turns that read like an instruction to an
        assistant.
        """
        wanted = set(terms(question)) if self.turns else set()
        weights = self._weights(wanted)
        needed = LEAST_COVERAGE * sum(weights.values())
        if not needed:
            return
        for place, score in self._ranked(wanted):
            turn = self.turns[place]
            words = frozenset(self._words[place].split())
            if sum(weight for word, weight in weights.items() if word in words) < needed:
                continue
            shown = self._shown(turn, words, at, is_hidden)
            if shown is not None:
                yield SaidTurn(shown, self._context(turn, words, at, is_hidden), score)

    def _weights(self, wanted: set[str]) -> dict[str, float]:
        """Return the weights of the rarest words of a question."""
        count = len(self.turns)
        rarities = {word: math.log(1 + count / (1 + len(self._counts(word)[0]))) for word in wanted}
        rarest = sorted(rarities, key=lambda word: (-rarities[word], word))[:RAREST]
        return {word: rarities[word] for word in rarest}

    def _ranked(self, wanted: set[str]) -> list[tuple[int, float]]:
        places, weights = self._scores.best(wanted, MOST_CANDIDATES)
        base = dict(zip(places.tolist(), weights.tolist(), strict=True))
        best = max(base.values(), default=1.0)
        scores = {place: score / best for place, score in base.items()}
        for place, score in base.items():
            for neighbour, share in ((place + 1, NEXT_TURN), (place - 1, TURN_BEFORE)):
                if neighbour in base and self.turns[neighbour].session_id == self.turns[place].session_id:
                    scores[neighbour] += share * score / best
        return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))

    def _shown(
        self,
        turn: SourceTurn,
        words: frozenset[str],
        at: datetime,
        is_hidden: Callable[[SourceTurn, frozenset[str]], bool],
    ) -> SourceTurn | None:
        """Return a turn as an agent is shown it, None where it is not."""
        if (turn.said_at is not None and turn.said_at > at) or is_hidden(turn, words):
            return None
        return served_turn(turn)

    def _context(
        self,
        turn: SourceTurn,
        words: frozenset[str],
        at: datetime,
        is_hidden: Callable[[SourceTurn, frozenset[str]], bool],
    ) -> SourceTurn | None:
        """Return the turn before this one where this one is short or points back, and the other may be told."""
        before = self._before.get(turn.place)
        if before is None or (len(words) > SHORT and not _POINTS_BACK.match(turn.text)):
            return None
        return self._shown(before, frozenset(terms(before.text)), at, is_hidden)
