"""The budget is never exceeded: the estimate is on the high side of a real tokenizer, and a text's bytes bound it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.recall.tokens import token_upper_bound, utf8_size

LINES = [
    "- Lena prefers window seats on trains and aisle seats on planes. (since 2026-01-04)",
    "- The deploy key rotates every 90 days; the next date is 2026-05-17 at 06:15.",
    "- Sein Büro liegt in der Köpenicker Straße 148, 10997 Berlin.",
    "- L'équipe préfère les réunions du mardi après-midi à Besançon.",
    "- ユーザーは東京都に住んでいます。毎朝緑茶を飲みます。",
    "- Пользователь живёт в Москве и любит зелёный чай.",
    "- 사용자는 서울에 살고 있으며 고양이를 키웁니다.",
    "- المستخدم يعيش في القاهرة ويحب الشاي",
    "- Party! 😀🎉👩‍👩‍👧‍👦 with tag v2.31.0-rc1 and hash 9f86d081884c7d659a2feaa0c55ad015",
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A real tokenizer that lies in an installed wheel, of a small vocabulary: newer ones need fewer tokens."""
    pytest.importorskip("tokenizers")
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        pytest.skip("the extra afterword[local] is not installed, and with it no tokenizer")
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def counted(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("line", LINES)
def test_a_line_has_no_more_tokens_than_estimated(tokenizer: Any, line: str) -> None:
    block = "\n".join([line] * 8)
    assert counted(tokenizer, block) <= token_upper_bound(block)


def test_what_is_served_of_the_scenarios_is_never_more_than_estimated(tokenizer: Any, shared: Path) -> None:
    for path in sorted((shared / "data" / "scenarios").glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))["gold"]["facts"]
        block = "\n".join(f"- {fact['statement']}" for fact in facts)
        assert counted(tokenizer, block) <= token_upper_bound(block) <= 1.5 * counted(tokenizer, block), path.name


@given(st.text())
def test_no_estimate_exceeds_the_bytes(text: str) -> None:
    """A tokenizer that works on bytes never needs more tokens than there are bytes."""
    assert token_upper_bound(text) <= utf8_size(text) + 1


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n")), max_size=6))
def test_the_estimate_of_lines_is_not_below_that_of_the_whole(lines: list[str]) -> None:
    assert token_upper_bound("\n".join(lines)) <= sum(token_upper_bound(line) + (not line) for line in lines)


def test_english_costs_a_third_too_much_at_most() -> None:
    assert token_upper_bound("The user lives in Graz and works as an architect for the city.") <= 21
    assert token_upper_bound("") == 0
