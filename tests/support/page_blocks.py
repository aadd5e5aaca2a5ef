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
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from string import Template
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn

import afterword
from afterword.server.app import create_app
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

LONGEST_WAIT_S = 60.0


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

    `not_run` are the beginnings of commands that need what a test has not; their syntax is checked. `stand_ins` are run
    in place of the commands that begin so. `uvicorn` and `afterword serve` run in a thread, at a free port.
    """

    commands: Commands
    captured: pytest.CaptureFixture[str]
    not_run: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    """Words of the page and what stands in their place here: ids, addresses."""
    environment: dict[str, str] = field(default_factory=dict)
    _servers: list[tuple[uvicorn.Server, Thread]] = field(default_factory=list)
    _session: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run(self, page: Path) -> None:
        """Run every block. Fails where a command fails without the page showing it, or prints other than it shows."""
        blocks = read_blocks(page)
        # The servers of a page stay in its folder all the time.
        with self.commands.surroundings({}):
            try:
                for block, following in pairwise([*blocks, Block("", "", "", 0)]):
                    shown = following.text if following.language == "text" and not following.title else None
                    self._run_block(block, shown)
            except BaseException as error:
                error.add_note(f"{page.name}, line {block.line}")
                raise
            finally:
                self._stop_servers()

    def _run_block(self, block: Block, shown: str | None) -> None:
        if block.title:
            self._write(block)
        elif block.language == "bash":
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
            commands = commands_of(block)
            printed = "".join(self._run_command(command, shown) for command in commands)
            if shown is not None:
                ends_at = time.monotonic() + LONGEST_WAIT_S
                # A reader who asks a server for what it does in the background tries again as well.
                while _is_asking_alone(commands) and not self._is_shown(shown, printed) and time.monotonic() < ends_at:
                    time.sleep(0.2)
                    printed = self._run_command(commands[0], shown)
                self._compare(shown, printed)
        elif block.language == "python":
            with self._as_reader():
                exec(compile(self._with_replacements(block.text), f"line {block.line}", "exec"), self._session)
            if shown is not None:
                self._compare(shown, self.captured.readouterr().out)
        else:
            assert block.language in ("text", "json", "toml", "yaml", "ini"), block

    def _write(self, block: Block) -> None:
        if block.title.endswith(".py"):
            compile(block.text, block.title, "exec")
        path = self.commands.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._with_replacements(block.text), encoding="utf-8")

    def _run_command(self, command: str, shown: str | None) -> str:
        """Return what a command prints."""
        if any(command.startswith(beginning) for beginning in self.not_run):
            return ""
        for beginning, stand_in in self.stand_ins.items():
            if command.startswith(beginning):
                command = stand_in
        command = Template(self._with_replacements(command)).safe_substitute(self.environment)
        words = shlex.split(command, comments=True)
        variables: dict[str, str] = {}
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            variables[match[1]] = match[2]
            words.pop(0)
        if words[0] == "export":
            self.environment |= dict(word.split("=", 1) for word in words[1:])
            return ""
        environment = {"COLUMNS": "80", "XDG_CACHE_HOME": str(self.commands.folder), **self.environment, **variables}
        target = self.commands.folder / words.pop() if words[-2:-1] == [">"] else None
        if target is not None:
            words.pop()
        runs = {
            "afterword": self._run_afterword,
            "python": self._run_python,
            "uvicorn": self._serve,
            "curl": self._curl,
        }
        run: Callable[..., str] = (
            self._serve if words[:2] == ["afterword", "serve"] else runs.get(words[0], self._run_other)
        )
        printed = run(words, environment, shown)
        if key := re.search(r"^afterword_[\w-]{20,}$", printed, re.MULTILINE):
            self.replaced["afterword_..."] = key[0]
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

    def _serve(self, words: list[str], environment: Mapping[str, str], shown: str | None) -> str:
        """Start a server in a thread. The address that the page names leads there from now on."""
        with self._as_reader(environment):
            if words[0] == "uvicorn":
                module, _, name = words[1].partition(":")
                port, service = 8000, getattr(import_module(module), name)
            else:
                store = afterword.open()
                port, service = store.settings.server.port, create_app(store, store.settings.server)
            server = uvicorn.Server(uvicorn.Config(service, port=0, log_config=None, access_log=False))
            thread = Thread(target=server.run, name="server of a page")
            thread.start()
            self._servers.append((server, thread))
            while not server.started and thread.is_alive():
                time.sleep(0.01)
        address = server.servers[0].sockets[0].getsockname()
        self.replaced[f"127.0.0.1:{port}"] = f"127.0.0.1:{address[1]}"
        return ""

    def _stop_servers(self) -> None:
        for server, thread in self._servers:
            server.should_exit = True
            thread.join()

    def _curl(self, words: list[str], environment: Mapping[str, str], shown: str | None) -> str:
        """Send the request of a `curl` command. A test may run where there is no curl."""
        parser = ArgumentParser()
        parser.add_argument("url")
        parser.add_argument("-H", action="append", default=[])
        parser.add_argument("-d")
        parser.add_argument("-X")
        parser.add_argument("-f", action="store_true")
        parser.add_argument("-w")
        request = parser.parse_args(words[1:])
        headers = dict(header.split(": ", 1) for header in request.H)
        method = request.X or ("POST" if request.d else "GET")
        answer = httpx.request(method, request.url, headers=headers, content=request.d, timeout=30)
        return f"{answer.text}\n"

    def _run_other(self, words: list[str], environment: Mapping[str, str], shown: str | None) -> str:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
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
            # A file of the reader may be called like a module of the tests.
            for file in self.commands.folder.glob("*.py"):
                patch.delitem(sys.modules, file.stem, raising=False)
            try:
                yield
            finally:
                own = (set(sys.modules) - known) | {file.stem for file in self.commands.folder.glob("*.py")}
                for name in own & set(sys.modules):
                    if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self.commands.folder)):
                        del sys.modules[name]

    def _with_replacements(self, text: str) -> str:
        for words, replacement in self.replaced.items():
            text = text.replace(words, replacement)
        return text

    def _compare(self, shown: str, printed: str) -> None:
        """Check that a command prints what the page shows, and note which id stands for which."""
        names: dict[str, str] = {}
        matched = re.fullmatch(self._pattern(_without_margins(shown), names), _without_margins(printed))
        assert matched, f"the page shows\n{shown}\nbut one sees\n{printed}"
        self.replaced |= {identifier: matched[name] for identifier, name in names.items()}

    def _is_shown(self, shown: str, printed: str) -> bool:
        return bool(re.fullmatch(self._pattern(_without_margins(shown), {}), _without_margins(printed)))

    def _pattern(self, shown: str, names: dict[str, str]) -> str:
        """Return what matches the text of a page. `names` gets the group of each id that is new."""
        pattern, end = "", 0
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
        return pattern + re.escape(shown[end:])


def _is_asking_alone(commands: list[str]) -> bool:
    return len(commands) == 1 and commands[0].startswith("curl ") and " -d " not in commands[0]


def _without_margins(text: str) -> str:
    """Return a text without spaces at the ends of its lines, and without empty lines around it."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"
