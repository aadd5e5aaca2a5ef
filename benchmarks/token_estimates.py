"""How far the token estimate of a block is from what real tokenizers count, by text and tokenizer.

The tokenizers are files of installed packages; nothing is downloaded. `wordllama` brings that of Llama 2. For the other
ones install two packages without their dependencies, and name their folder:

    pip install --no-deps --target FOLDER litellm mistral-common
    python benchmarks/token_estimates.py --packages FOLDER
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tiktoken
from tokenizers import Tokenizer

from afterword.recall.tokens import estimated_token_count

Count = Callable[[str], int]
SHARED = Path(__file__).parents[2] / "shared" / "data"
LINES_IN_A_BLOCK = 15


def tokenizers(packages: Path | None) -> dict[str, Count]:
    """Return the tokenizers that are here, by name."""
    counts: dict[str, Count] = {}
    spec = importlib.util.find_spec("wordllama")
    if spec is not None and spec.origin is not None:
        counts["Llama 2"] = _huggingface(Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json")
    if packages is not None:
        litellm = packages / "litellm" / "litellm_core_utils" / "tokenizers"
        os.environ["TIKTOKEN_CACHE_DIR"] = str(litellm)
        for name in ("o200k_base", "cl100k_base"):
            counts[name] = _ordinary(tiktoken.get_encoding(name))
        counts["Claude (2023)"] = _huggingface(litellm / "anthropic_tokenizer.json")
        counts["DeepSeek"] = _huggingface(litellm / "deepseek_tokenizer.json")
        counts["Mistral Tekken"] = _tekken(packages / "mistral_common" / "data" / "tekken_240911.json")
    return counts


def _huggingface(path: Path) -> Count:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _tekken(path: Path) -> Count:
    layout = json.loads(path.read_text(encoding="utf-8"))
    config = layout["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in layout["vocab"][:size]}
    return _ordinary(tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}))


def _ordinary(encoding: tiktoken.Encoding) -> Count:
    return lambda text: len(encoding.encode_ordinary(text))


def texts(shared: Path) -> dict[str, list[str]]:
    """Return the lines of each text, as they stand in blocks."""
    lines: dict[str, list[str]] = {"scenarios, facts": [], "scenarios, turns": [], "LoCoMo, turns": []}
    for path in sorted((shared / "scenarios").glob("*.json")):
        scenario = json.loads(path.read_text(encoding="utf-8"))
        for fact in scenario["gold"]["facts"]:
            since = f" (since {fact['valid_from']})" if fact.get("valid_from") else ""
            lines["scenarios, facts"].append(f"- {fact['statement']}{since}")
        for session in scenario["sessions"]:
            for message in session["messages"]:
                if message["role"] == "user":
                    text = " ".join(message["content"].split())[:300]
                    lines["scenarios, turns"].append(f'- {session["started_at"][:10]} {message["source"]}: "{text}"')
    with (shared / "benchmarks" / "locomo" / "sessions.jsonl").open(encoding="utf-8") as file:
        for session in map(json.loads, file):
            for message in session["messages"]:
                text = " ".join(message["text"].split())[:300]
                lines["LoCoMo, turns"].append(f'- {session["when"][:10]} {message["source"]}: "{text}"')
    languages = json.loads((Path(__file__).parent / "languages.json").read_text(encoding="utf-8"))
    return lines | {name: [f"- {line}" for line in sentences] for name, sentences in languages.items()}


def blocks(lines: list[str]) -> Iterator[str]:
    """Yield blocks of several lines. The text of a language is repeated until it makes one."""
    lines = lines * (1 + LINES_IN_A_BLOCK // len(lines)) if len(lines) < LINES_IN_A_BLOCK else lines
    for start in range(0, len(lines) - LINES_IN_A_BLOCK + 1, LINES_IN_A_BLOCK):
        yield "\n".join(lines[start : start + LINES_IN_A_BLOCK])


def table(counts: dict[str, Count], lines: dict[str, list[str]]) -> Iterator[str]:
    """Yield the rows: by text and tokenizer, the mean of estimate over count, and the largest overrun of a block."""
    yield f"| text | blocks | {' | '.join(counts)} |"
    yield "|---" * (2 + len(counts)) + "|"
    for name, sentences in lines.items():
        cells = []
        parts = list(blocks(sentences))
        for count in counts.values():
            real = [count(block) for block in parts]
            estimates = [estimated_token_count(block) for block in parts]
            over = max(there / estimate - 1 for there, estimate in zip(real, estimates, strict=True))
            cells.append(f"{sum(estimates) / sum(real) - 1:+.0%} ({over:+.0%})")
        yield f"| {name} | {len(parts)} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, default=None)
    parser.add_argument("--shared", type=Path, default=SHARED)
    asked: Any = parser.parse_args()
    sys.stdout.writelines(f"{line}\n" for line in table(tokenizers(asked.packages), texts(asked.shared)))


if __name__ == "__main__":
    main()
