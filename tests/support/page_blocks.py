"""The code blocks of the pages in `docs/`: reading them, and running a page as a reader does, from top to bottom.

A block with a title is a file, which is written. A `bash` block is typed into a terminal, and a `text` block after it
is what one sees then. A `python` block without a title is typed into one Python session for the whole page.
"""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from commands import Commands

_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_ASSIGNMENT = re.compile(r"([A-Z_]+)=(.*)", re.DOTALL)
# What differs from reader to reader: ids, instants, days, and whatever dots stand for.
_VARYING = re.compile(
    r"(?P<id>\b(?=[a-f]*\d)[0-9a-f]{8,}\b)|(?P<instant>\d{4}-\d\d-\d\dT[\d:.]+Z)|(?P<day>\d{4}-\d\d-\d\d)"
    r"|(?P<lines>^\.\.\.\n)|(?P<dots>\.\.\.)",
    re.MULTILINE,
)
_PATTERNS = {
    "instant": r"\d{4}-\d\d-\d\dT[\d:.]+Z",
    "day": r"\d{4}-\d\d-\d\d",
    "lines": r"(?:.*\n)*?",
    "dots": r"[^\n]*",
}


@dataclass(frozen=True)
class Block:
    """A code block. `title` is the name of the file that it is, or empty; `line` where its text begins."""

    language: str
    title: str
    text: str
    line: int


def read_blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    blocks = [
        Block(match["language"], match["title"] or "", match["text"], text[: match.start("text")].count("\n") + 1)
        for match in _BLOCK.finditer(text)
    ]
    assert text.count("\n```") == 2 * len(blocks), f"{page.name} has a block that is not read"
    return blocks


def commands_of(block: Block) -> list[str]:
    """Return the commands of a `bash` block, each on one line and without comments."""
    joined = block.text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@dataclass
class PageRunner:
    """Runs the blocks of one page in an empty folder.

    `stand_ins` are commands that are run in place of others, by the beginnings of those, or calls that take the page's
    part of them. `not_run` are the first words of commands that need what a test has not; their syntax is checked.
    """

    commands: Commands
    captured: pytest.CaptureFixture[str]
    not_run: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    """Words of the page and what stands in their place here: ids, addresses."""
    environment: dict[str, str] = field(default_factory=dict)
    _session: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run(self, page: Path) -> None:
        """Run every block. Fails where a command fails without the page showing it, or prints other than it shows."""
        blocks = read_blocks(page)
        for block, following in pairwise([*blocks, Block("", "", "", 0)]):
            shown = following.text if following.language == "text" and not following.title else None
            try:
                self._run_block(block, shown)
            except BaseException as error:
                error.add_note(f"{page.name}, line {block.line}")
                raise

    def _run_block(self, block: Block, shown: str | None) -> None:
        if block.title:
            self._write(block)
        elif block.language == "bash":
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
            printed = "".join(self._run_command(command, shown) for command in commands_of(block))
            if shown is not None:
                self._compare(shown, printed)
        elif block.language == "python":
            with self._as_reader():
                exec(compile(self._with_replacements(block.text), f"line {block.line}", "exec"), self._session)
            if shown is not None:
                self._compare(shown, self.captured.readouterr().out)
        else:
            assert block.language in ("text", "json", "toml", "yaml"), block

    def _write(self, block: Block) -> None:
        if block.title.endswith(".py"):
            compile(block.text, block.title, "exec")
        path = self.commands.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._with_replacements(block.text), encoding="utf-8")

    def _run_command(self, command: str, shown: str | None) -> str:
        """Return what a command prints."""
        for beginning, stand_in in self.stand_ins.items():
            if command.startswith(beginning):
                command = stand_in
        words = shlex.split(self._with_replacements(command), comments=True)
        variables: dict[str, str] = {}
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            variables[match[1]] = match[2]
            words.pop(0)
        if not words or words[0] in self.not_run:
            return ""
        if words[0] == "export":
            self.environment |= dict(word.split("=", 1) for word in words[1:])
            return ""
        environment = {"COLUMNS": "80", "XDG_CACHE_HOME": str(self.commands.folder), **self.environment, **variables}
        target = self.commands.folder / words.pop() if words[-2:-1] == [">"] else None
        if target is not None:
            words.pop()
        runs: dict[str, Callable[..., str]] = {"afterword": self._run_afterword, "python": self._run_python}
        printed = runs.get(words[0], self._run_other)(words, environment, shown)
        if target is None:
            return printed
        target.write_text(printed, encoding="utf-8")
        return ""

    def _run_afterword(self, words: list[str], environment: Mapping[str, str], shown: str | None) -> str:
        may_fail = shown is not None and bool(re.search(r"^afterword: |failed", shown, re.MULTILINE))
        printed = self.commands.within(environment, *words[1:], expected=None if may_fail else 0)
        return printed if not may_fail else printed + self.commands.errors

    def _run_python(self, words: list[str], environment: Mapping[str, str], shown: str | None) -> str:
        with self._as_reader(environment, words[1:]):
            runpy.run_path(str(self.commands.folder / words[1]), run_name="__main__")
        return self.captured.readouterr().out

    def _run_other(self, words: list[str], environment: Mapping[str, str], shown: str | None) -> str:
        done = subprocess.run(words, cwd=self.commands.folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def _as_reader(
        self, environment: Mapping[str, str] | None = None, arguments: list[str] | None = None
    ) -> Iterator[None]:
        """Be in the reader's folder, with the reader's variables and modules."""
        known = set(sys.modules)
        with self.commands.surroundings(environment or self.environment) as patch:
            patch.setattr(sys, "argv", arguments or [""])
            patch.syspath_prepend(self.commands.folder)
            try:
                yield
            finally:
                for name in set(sys.modules) - known:
                    if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self.commands.folder)):
                        del sys.modules[name]

    def _with_replacements(self, text: str) -> str:
        for words, replacement in self.replaced.items():
            text = text.replace(words, replacement)
        return text

    def _compare(self, shown: str, printed: str) -> None:
        """Check that a command prints what the page shows, and note which id stands for which."""
        names: dict[str, str] = {}
        pattern, end = "", 0
        shown, printed = _without_margins(shown), _without_margins(printed)
        for match in _VARYING.finditer(shown):
            pattern += re.escape(shown[end : match.start()])
            end, identifier = match.end(), match["id"]
            if identifier is None:
                pattern += _PATTERNS[str(match.lastgroup)]
            elif identifier in self.replaced:
                pattern += re.escape(self.replaced[identifier])
            elif identifier in names:
                pattern += f"(?P={names[identifier]})"
            else:
                names[identifier] = f"id_{len(names)}"
                pattern += f"(?P<{names[identifier]}>[0-9a-f]{{{len(identifier)}}})"
        pattern += re.escape(shown[end:])
        matched = re.fullmatch(pattern, printed)
        assert matched, f"the page shows\n{shown}\nbut one sees\n{printed}"
        self.replaced |= {identifier: matched[name] for identifier, name in names.items()}


def _without_margins(text: str) -> str:
    """Return a text without spaces at the ends of its lines, and without empty lines around it."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"
