"""Which facts a query is about: BM25 over their words. Pure, so that every database ranks alike."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import snowballstemmer

from afterword.store.assertions import OWNER
from afterword.store.facts import Fact

K1 = 1.2
B = 0.75
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    a about after again all also am an and any are as at be because been before being but by can could d did do does
    doing don down each for from further get got had has have having he her here hers him his how i if in into is it
    its just ll let m may me might more most must my no nor not now of off on once one only or other our out over own
    please re s same shall she should so some such t than that the their them then there these they this those through
    to too under until up us user ve very was we were what when where which while who whom whose why will with would
    you your yours
    """,
    )
)

_WORD = re.compile(r"[^\W_]+")
# Scripts written without spaces between words: there two characters in a row stand in for a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def rank(query: str, facts: Sequence[Fact]) -> list[tuple[Fact, float]]:
    """Return the facts that share a word with the query, each with its score, best first; ties as given.

    The score is BM25 with k1 = 1.2 and b = 0.75 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework:
    BM25 and Beyond" (2009), section 3, with one added inside the logarithm so that no weight is negative. The words of
    a fact are those of its statement, subject, attribute and value, as English stems, stop words left out.
    """
    wanted = set(terms(query))
    documents = [Counter(_words_of(fact)) for fact in facts]
    if not wanted or not documents:
        return []
    lengths = [document.total() for document in documents]
    mean = sum(lengths) / len(lengths) or 1.0
    weights = {term: _weight(sum(term in document for document in documents), len(documents)) for term in wanted}
    scored = [
        (fact, sum(weights[term] * _saturated(document[term], length / mean) for term in wanted & document.keys()))
        for fact, document, length in zip(facts, documents, lengths, strict=True)
    ]
    return sorted((item for item in scored if item[1] > 0), key=lambda item: -item[1])


def terms(text: str) -> list[str]:
    """Return the words of a text for comparison: case and accents folded, stop words left out, English stems."""
    return [_stem(word) for word in _words(_folded(text)) if word not in STOP_WORDS]


def _words_of(fact: Fact) -> list[str]:
    subject = "" if fact.subject == OWNER else fact.subject
    return terms(" ".join([fact.statement, subject, fact.attribute, fact.value]))


def _weight(holding: int, total: int) -> float:
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def _saturated(count: int, relative_length: float) -> float:
    return count * (K1 + 1) / (count + K1 * (1 - B + B * relative_length))


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(sign for sign in decomposed if unicodedata.category(sign) != "Mn")
    return unicodedata.normalize("NFC", bare)


def _words(text: str) -> Iterable[str]:
    for word in _WORD.findall(text):
        if word.isascii():
            yield word
            continue
        start = 0
        for run in _UNSPACED.finditer(word):
            yield from filter(None, [word[start : run.start()]])
            yield from _pairs(run.group())
            start = run.end()
        yield from filter(None, [word[start:]])


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)] or [run]


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    # A stemmer holds the word it works on, so one shared by several threads would mix them up.
    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return stem
