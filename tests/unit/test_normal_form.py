"""The same text in NFC and in NFD gives the same at each stage."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.quote_search import find_quote
from afterword.extractors.readers import read_state
from afterword.facts.scopes import Scope
from afterword.facts.words import folded, terms
from afterword.normal_form import composed, decomposed
from afterword.privacy.blanking import PhraseSearch, WordsToBlank, blank_spans, letters_and_digits
from afterword.privacy.normalisation import undisguised_text
from afterword.recall.block import safe_line
from afterword.store.entered_statements import Entry

letters = st.sampled_from("abzäöüéñÅçşığőřžΐάйёї각한글日が々 ,.'\u1100\u1161\u11a8\u0308\u0301\u0b47\u0b3e")
texts = st.text(letters, max_size=40)
words = st.text(st.sampled_from("abzäöüéñÅçřž각한글が"), min_size=1, max_size=8)


@given(texts)
def test_each_stage_gives_the_same_for_both_forms(text: str) -> None:
    nfc, nfd = composed(text), decomposed(text)
    for stage in (folded, terms, letters_and_digits, undisguised_text, safe_line):
        assert stage(nfc) == stage(nfd)
    assert Entry(f"a {nfc}", subject=f"a {nfc}", tags=(nfc,)) == Entry(f"a {nfd}", subject=f"a {nfd}", tags=(nfd,))
    messages = [[{"type": "TextMessage", "source": form or "user", "content": form}] for form in (nfc, nfd)]
    first, second = ([*read_state(message, humans=[nfd]).turns] for message in messages)
    assert first == second
    assert all(unicodedata.is_normalized("NFC", turn.text) for turn in first)


@given(words, words, words)
def test_a_quote_is_found_in_either_form(before: str, quote: str, after: str) -> None:
    turn = composed(f"{before} {quote} {after}")
    for quoted in (composed(quote), decomposed(quote)):
        assert find_quote(quoted, turn) == composed(quote)


@given(words)
def test_a_value_is_blanked_in_either_form(value: str) -> None:
    for form in (composed, decomposed):
        text = form(f"9 {value}")
        for phrase in (composed(value), decomposed(value)):
            spans = WordsToBlank(values=PhraseSearch([phrase])).letter_spans(text)
            assert composed(blank_spans(text, spans)) == composed("9 [forgotten]")


@pytest.mark.parametrize("joint", ["\u00a0", "\u200b", "\u202f", "\u2060 "])
def test_a_quote_is_found_with_other_blanks(joint: str) -> None:
    quoted = find_quote(decomposed("in Malmö"), f"I live in{joint}Malmö now.")
    assert (quoted is not None) is (joint != "\u200b")
    assert find_quote("Mal\u200bmö", "in Malmö") == "Malmö"
    assert find_quote(decomposed("Malmö"), "in Mal\u200bmö.") == "Mal\u200bmö"


def test_a_scope_has_one_form() -> None:
    jose = Scope.user(decomposed("José"))
    assert jose == Scope.user("José") == Scope.parse(f"default/user/{decomposed('José')}")
    assert jose.id == "José"
    assert [str(form) for form in jose.other_forms] == [decomposed("default/user/José")]
    assert Scope.user("mira").other_forms == ()


@pytest.mark.parametrize("text", ["我住在东京，喜欢猫。", "我住在东京喜欢猫"])
def test_a_phrase_without_spaces_is_found_whatever_its_punctuation(text: str) -> None:
    assert PhraseSearch(["我住在东京，喜欢猫"]).letter_spans(text) == [(0, 8)]
