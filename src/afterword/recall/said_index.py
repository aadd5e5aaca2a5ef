"""Find the turns of a scope that match a question, whether or not a fact cites them. Pure.

An agent is shown only the speaker's own words of a turn, and no turn with a command to an assistant.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice

import numpy

from afterword.facts.transcripts import SourceTurn, TurnPlace
from afterword.facts.words import terms
from afterword.privacy.foreign.stretches import FILLER, foreign_stretches, without_foreign
from afterword.privacy.normalisation import visible_text
from afterword.privacy.prompt_injection import commands_assistant
from afterword.recall.block import SaidTurn
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


def shown_form(speaker: str, text: str) -> str:
    """Return the stored result of the checks of a turn: whether an agent is shown it, and its text if that differs."""
    own = _FILLED.sub(_LEFT_OUT, without_foreign(text, foreign_stretches(text, (speaker,))))
    if commands_assistant(own) or not any(sign.isalnum() for sign in own):
        return CHECKS
    shown = visible_text(own)
    return f"{CHECKS}{_WHOLE}" if shown == text else f"{CHECKS}{_CHANGED}{shown}"


def served_turn(turn: SourceTurn) -> SourceTurn | None:
    """Return a turn as an agent is shown it, or None if nothing of it may be shown.

    Pasted stretches become `[…]`. A turn with a command to an assistant is not shown at all.
    """
    stored = turn.shown
    if stored is None or not stored.startswith(CHECKS):
        stored = shown_form(turn.speaker, turn.text)
    form = stored[len(CHECKS) :]
    if form == _WHOLE:
        return turn
    return replace(turn, text=form[len(_CHANGED) :], shown=None) if form else None


class SaidIndex:
    """Searches the turns of a table by their words.

    `before` holds the turn before each turn, by the session and number of the latter.
    """

    def __init__(self, table: UnitTable, before: Mapping[str, Mapping[int, SourceTurn]]) -> None:
        self.table = table
        self.before = before
        self._search = SearchIndex(table, table.is_alive)
        self._words: dict[int, frozenset[str]] = {}
        self._spoken: dict[int, int] = {}
        self._served: dict[TurnPlace, SourceTurn | None] = {}

    def matching_turns(
        self,
        question: str,
        *,
        at: datetime,
        is_hidden: Callable[[SourceTurn, frozenset[str]], bool],
        related: Related = NO_RELATED,
    ) -> Iterator[SaidTurn]:
        """Yield the turns that match a question, best first. `related` are the words related to those of the question.

        Left out are turns from after `at`, turns that are hidden, and turns that read like an instruction to an
        assistant. Of turns with equal words and equal context the latest is yielded.
        """
        wanted = question_terms(question) if self.count else frozenset[str]()
        weights = self._weights(wanted)
        needed = LEAST_COVERAGE * sum(weights.values())
        if not needed:
            return

        def shown(place: int) -> SourceTurn | None:
            return self._shown(self.table.unit(place).turn, self._words_of(place), at, is_hidden)

        def asked_before(place: int) -> int | None:
            # A question that must not be shown brings no answer either, because the answer would reveal its topic.
            asking = self._question_before(place)
            return asking if asking is not None and shown(asking) is not None else None

        def said(place: int, score: float) -> SaidTurn | None:
            words = self._words_of(place)
            asking = asked_before(place) if _weight(weights, words, related) < needed else None
            if _weight(weights, words if asking is None else words | self._words_of(asking), related) < needed:
                return None
            turn = shown(place)
            if turn is None:
                return None
            context = self._context(turn, words, at, is_hidden) if asking is None else shown(asking)
            return SaidTurn(turn, context, score)

        ranked = self._ranked(question, asked_before, related)
        equal: dict[int, list[int]] = defaultdict(list)
        for place, _ in ranked:
            equal[self._spoken_hash(place)].append(place)
        for place, score in ranked:
            contexts: set[str | None] = set()
            found = [told for same in equal.pop(self._spoken_hash(place), ()) if (told := said(same, score))]
            for told in sorted(found, key=lambda each: each.order, reverse=True):
                context = told.context.text if told.context is not None else None
                if context not in contexts:
                    contexts.add(context)
                    yield told

    def shown_turns(
        self, session_id: str, *, at: datetime, is_hidden: Callable[[SourceTurn, frozenset[str]], bool]
    ) -> Iterator[SourceTurn]:
        """Yield the turns of a session as an agent is shown them, in order.

        Turns that `matching_turns` leaves out are left out here too.
        """
        places = self.table.turns_of(session_id)
        for place in sorted(places, key=lambda place: self.table.unit(place).number):
            shown = self._shown(self.table.unit(place).turn, self._words_of(place), at, is_hidden)
            if shown is not None:
                yield shown

    @property
    def count(self) -> int:
        """The number of turns."""
        return len(self.table.by_order)

    @property
    def cached_words(self) -> int:
        """The number of words whose weights are cached."""
        return self._search.cached_words

    def _words_of(self, place: int) -> frozenset[str]:
        words = self._words.get(place)
        if words is None:
            words = self._words[place] = frozenset(self.table.unit(place).terms.split())
        return words

    def _weights(self, wanted: frozenset[str]) -> dict[str, float]:
        frequencies = {word: int(self.table.is_alive[self.table.counts(word)[0]].sum()) for word in wanted}
        rarities = {word: math.log(1 + self.count / (1 + frequency)) for word, frequency in frequencies.items()}
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

    def _ranked(
        self, question: str, asked_before: Callable[[int], int | None], related: Related
    ) -> list[tuple[int, float]]:
        """Return the places of the turns that match, best first, each with its score.

        If a turn that matches asks something, the answer in the next turn matches too, whatever its words.
        """
        meaning = Nearness(numpy.zeros(self.table.size), _NO_PLACES, related) if related else None
        scores = self._best_different(self._search.ranked_places(question, meaning=meaning, most=MOST_REPEATED))
        for place, score in [(place, score) for place, score in scores.items() if self.table.asks[place]]:
            after = int(self.table.rank[place]) + 1
            answer = int(self.table.by_order[after]) if after < len(self.table.by_order) else place
            if asked_before(answer) == place:
                scores[answer] = max(scores.get(answer, 0.0), ANSWER * (score + WEIGHTS.asking))
        return sorted(scores.items(), key=lambda scored: (-scored[1], self.table.rank[scored[0]]))

    def _best_different(self, scores: dict[int, float]) -> dict[int, float]:
        """Return the best of these scores, with at most `MOST_CANDIDATES` places that differ in their words."""
        different: set[int] = set()
        for number, place in enumerate(scores):
            different.add(self._spoken_hash(place))
            if len(different) > MOST_CANDIDATES:
                return dict(islice(scores.items(), number))
        return scores

    def _spoken_hash(self, place: int) -> int:
        """Return a hash of the speaker and the words of a turn, without letter case and white space."""
        known = self._spoken.get(place)
        if known is None:
            turn = self.table.unit(place).turn
            known = self._spoken[place] = hash((turn.speaker, *turn.text.casefold().split()))
        return known

    def _shown(
        self,
        turn: SourceTurn,
        words: frozenset[str],
        at: datetime,
        is_hidden: Callable[[SourceTurn, frozenset[str]], bool],
    ) -> SourceTurn | None:
        """Return a turn as an agent is shown it, or None if it must not be shown."""
        if (turn.said_at is not None and turn.said_at > at) or is_hidden(turn, words):
            return None
        if turn.place not in self._served:
            self._served[turn.place] = served_turn(turn)
        return self._served[turn.place]

    def _context(
        self,
        turn: SourceTurn,
        words: frozenset[str],
        at: datetime,
        is_hidden: Callable[[SourceTurn, frozenset[str]], bool],
    ) -> SourceTurn | None:
        """Return the turn before this one if this one is short or refers back, and if the turn before may be shown."""
        before = self.before.get(turn.session_id, {}).get(turn.number)
        if before is None or (len(words) > SHORT and not _POINTS_BACK.match(turn.text)):
            return None
        return self._shown(before, frozenset(terms(before.text)), at, is_hidden)


def _weight(weights: Mapping[str, float], words: frozenset[str], related: Related) -> float:
    """Return the weight of the words of a question that a text contains, or of which it contains a related word."""
    total = 0.0
    for word, weight in weights.items():
        likeness = max((like for other, like in related.get(word, {}).items() if other in words), default=0.0)
        total += weight * (1.0 if word in words else WEIGHTS.related * likeness)
    return total
