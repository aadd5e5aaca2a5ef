"""The time of every public function of privacy, and of masking named secrets, grows hardly faster than its input, whatever the input is."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from afterword.extractors.words_called_private import NAMED_SECRET, hide_as_stored, hide_in_state
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.blanking import PhraseSearch, WordsToBlank, blank_spans, letters_and_digits, mentions_phrase
from afterword.privacy.foreign.stretches import foreign_stretches, foreign_stretches_by_turn
from afterword.privacy.normalisation import plain_forms, remove_invisible_characters, searchable_text, undisguised_text
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.policy import Privacy
from afterword.privacy.prompt_injection import has_instruction_around, is_instruction
from afterword.privacy.record_requests import Markers
from afterword.privacy.redaction import is_only_masks, mask_secrets

FIRST_SIZE, SIZES, SOAK_SIZES = 4_000, (4_000, 16_000), (40_000, 160_000)
MOST_GROWTH = 8.0
"""Four times the input may take a little more than four times the time, on a loaded machine still more. A square takes
sixteen."""
NOTICEABLE_S = 0.05
QUICK_S = 0.08
"""What takes less for the first size is not measured further. The soak measures everything, on larger inputs."""
TRIES = 3

HOSTILE = (
    "bob 10:00\n",
    "Q1: a?\n",
    "key: x\n",
    "JOE\nhi\n",
    *(
        "![a](http://a?",
        "please ",
        "off the record ",
        "don't ",
        "ignore all ",
        "ignore previous ",
        "system: you ",
        "*a ",
    ),
    *("_a_ ", "`a ", "\u200b", "a\u0336", "а", "＊", "\n", ". ", " ", "\u00a0", "[", "(", "<", "send a to "),
    *("you ", "password is ", "password ", "my password ", "use a1 as ", "x is my ", "what is the password? "),
    *(
        "mysql -u ",
        "echo a ",
        "curl ",
        "DE89 ",
        "4111 ",
        "1-",
        "door code ",
        "pin 1 ",
        "token ",
        "key a1b2 ",
        "abandon ",
        "1. abc ",
    ),
    *("code 1234 ", "the door with 1234 ", "wifi Ab1!cd ", "a@b.co and ", "is 4471 for the ", "security question is "),
    *("[redacted: card number], ", "1234-", "don't save what i say about ", "only if "),
    *("passport is 1 ", "-----BEGIN PRIVATE KEY-----", "[redacted: password] ", "[forgotten] ", '{"a":', "a@b:c@"),
    *("a.b.", "a-b-", "a_b_", "save it to memory ", "remember "),
    *(
        "Bob: I ",
        "Bob: I\n",
        "<document>",
        "<a ",
        "</p>\n",
        "> a\n",
        '"',
        '"a\n',
        "'a\n",
        "“a",
        "---\n",
        "```\n",
        "From: a@b.co\n",
    ),
    *(
        "a,b,c\n",
        "a=b\n",
        "here is an email ",
        "Dear Bob,\n",
        "Best,\nBob\n",
        "10:00 Bob: I ",
        "Education\n2019 - 2020\n",
        "[quote]",
    ),
)


def _turns(text: str) -> list[Turn]:
    lines = [text[start : start + 200] for start in range(0, len(text), 200)]
    roles = (Role.HUMAN, Role.AGENT)
    return [Turn(number, "user", roles[number % 2], line) for number, line in enumerate(lines, 1)]


def _state(text: str) -> dict[str, object]:
    messages = [{"type": "TextMessage", "source": turn.speaker, "content": turn.text} for turn in _turns(text)]
    return {"type": "TeamState", "messages": messages}


def _named_texts(text: str) -> dict[str, str]:
    """Return many short texts with a password and a plain word, each with the same text masked."""
    texts = [f"{start}. use Quartz-19 or Lena for {text[start : start + 4]}" for start in range(0, len(text), 4)]
    return {text: text.replace("Quartz-19", NAMED_SECRET).replace("Lena", NAMED_SECRET, 1) for text in texts}


def _hidden_from_state(text: str) -> object:
    texts = _named_texts(text)
    messages = [{"content": said, "arguments": f"{said[:-1]} Quartz-19"} for said in texts]
    return hide_in_state({"messages": messages}, texts, [], Markers())


def _hidden_as_stored(text: str) -> object:
    texts = _named_texts(text)
    fresh = [Turn(number, "user", Role.HUMAN, said) for number, said in enumerate(texts, 1)]
    stored = [Turn(number, "user", Role.HUMAN, said) for number, said in enumerate(texts.values(), 1)]
    return hide_as_stored(fresh, stored, Markers())


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "mask_secrets": mask_secrets,
    "is_only_masks": is_only_masks,
    "mask_and_hide_turns": lambda text: Privacy().mask_and_hide_turns(_turns(text)),
    "mask_value_and_others": lambda text: Privacy().mask_value_and_others("password", text[:100], text),
    "mask_state": lambda text: Privacy().mask_state(_state(text), ["user"]),
    "hide_off_record": lambda text: hide_off_record(_turns(text), Markers()),
    "Markers.requested_change": Markers().requested_change,
    "is_instruction": is_instruction,
    "has_instruction_around": lambda text: [
        has_instruction_around(text, start, start + 5) for start in range(0, len(text), 2_000)
    ],
    "searchable_text": searchable_text,
    "plain_forms": lambda text: list(plain_forms(text)),
    "remove_invisible_characters": remove_invisible_characters,
    "undisguised_text": undisguised_text,
    "foreign_stretches": lambda text: foreign_stretches(text, ("mira",)),
    "foreign_stretches_by_turn": lambda text: foreign_stretches_by_turn(_turns(text)),
    "letters_and_digits": letters_and_digits,
    "blank_spans": lambda text: blank_spans(text, [(place, place + 1) for place in range(0, len(text) // 4, 3)]),
    "WordsToBlank": lambda text: WordsToBlank(PhraseSearch(["a b", "please please"]), PhraseSearch(["password"])).letter_spans(text),
    "hide_in_state": _hidden_from_state,
    "hide_as_stored": _hidden_as_stored,
    "mentions_phrase": lambda text: mentions_phrase(text, "a b c d"),
}  # fmt: skip


def _seconds(function: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    function(text)
    return time.process_time() - start


def _growth(function: Callable[[str], object], unit: str, sizes: tuple[int, int]) -> float:
    """Return how many times longer the large size takes than the small one; 0 if the small one is too fast to measure."""
    # Whole units, so that every size ends alike and takes as many passes.
    before, after = (_seconds(function, unit * (size // len(unit))) for size in sizes)
    return after / before if before >= NOTICEABLE_S else 0.0


def _grows_evenly(name: str, unit: str, sizes: tuple[int, int]) -> bool:
    # What is slow by itself is slow each time, what another process slowed down is not.
    return any(_growth(FUNCTIONS[name], unit, sizes) <= MOST_GROWTH for _ in range(TRIES))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_four_times_the_input_takes_about_four_times_the_time(name: str) -> None:
    def is_quick(unit: str) -> bool:
        return _seconds(FUNCTIONS[name], unit * (FIRST_SIZE // len(unit))) <= QUICK_S

    assert [unit for unit in HOSTILE if not is_quick(unit) and not _grows_evenly(name, unit, SIZES)] == []


@pytest.mark.soak
@pytest.mark.parametrize("name", FUNCTIONS)
def test_four_times_a_large_input_takes_about_four_times_the_time(name: str) -> None:
    assert [unit for unit in HOSTILE if not _grows_evenly(name, unit, SOAK_SIZES)] == []
