"""A budget counts real tokens: no block has a tenth more than are counted, and a text's bytes bound the count."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.recall.tokens import estimated_token_count, utf8_size

LANGUAGES = Path(__file__).parents[2] / "benchmarks" / "languages.json"
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
    """A real tokenizer that lies in an installed package, of a small vocabulary: newer ones need fewer tokens."""
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


def test_mixed_lines_have_less_than_a_tenth_more_tokens_than_counted(tokenizer: Any) -> None:
    block = "\n".join(LINES)
    assert counted(tokenizer, block) <= 1.1 * estimated_token_count(block)


@pytest.mark.parametrize(
    "language", json.loads(LANGUAGES.read_text(encoding="utf-8")).items(), ids=lambda pair: pair[0]
)
def test_other_languages_have_less_than_a_tenth_more_tokens_than_counted(
    tokenizer: Any, language: tuple[str, list[str]]
) -> None:
    block = "\n".join(f"- {line}" for line in language[1])
    assert counted(tokenizer, block) <= 1.1 * estimated_token_count(block)


def test_facts_of_the_scenarios_have_nearly_as_many_tokens_as_counted(tokenizer: Any, shared: Path) -> None:
    for path in sorted((shared / "data" / "scenarios").glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))["gold"]["facts"]
        block = "\n".join(f"- {fact['statement']}" for fact in facts)
        assert 0.91 <= estimated_token_count(block) / counted(tokenizer, block) <= 1.15, path.name


@given(st.text())
def test_no_estimate_exceeds_the_bytes(text: str) -> None:
    """A tokenizer that works on bytes never needs more tokens than there are bytes."""
    assert estimated_token_count(text) <= utf8_size(text) + 1


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n"), min_size=1), min_size=1, max_size=6))
def test_the_count_of_lines_is_the_sum_of_their_counts(lines: list[str]) -> None:
    assert estimated_token_count("\n".join(lines)) == sum(map(estimated_token_count, lines))


def test_nothing_has_no_tokens() -> None:
    assert estimated_token_count("") == 0
