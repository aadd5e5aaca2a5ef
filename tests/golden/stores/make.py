"""Make a store by the program that PYTHONPATH leads to, through its command line alone: `python make.py 0004 FOLDER`.

Writes FOLDER/0004.sql, the SQLite store as statements, and FOLDER/0004.json, what that program says of it. Commands
that the program does not know yet are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient
from typer.main import get_group

from afterword import FactMemory, record_session
from afterword.cli import app, main
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.testing import ScriptedEndpoint, facts_reply
from afterword.facts.assertions import Kind

SESSIONS = {
    "mira": {
        "trip": "I live in Graz. I'm vegetarian. I prefer the window seat.",
        "move": "I moved to Linz. I am allergic to peanuts. My sister Ana lives in Porto.",
        "diet": "I'm no longer vegetarian. I prefer the aisle seat now.",
        "job": "I work as a nurse.",
    },
    "jon": {
        "app": "I live in Wels. We decided to use Postgres for the app.",
        "later": "Actually, we will use SQLite instead of Postgres.",
    },
}
LATER = {"pet": "I prefer tea. I live in Villach.", "held": "I moved to Steyr."}


class Program:
    """The command line of the program, in a folder with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = set(get_group(app).commands)

    def __call__(self, *arguments: str, fails: bool = False) -> Any:
        """Return what a command prints as JSON; None where the program has no such command."""
        if arguments[0] not in self.commands:
            return None
        os.chdir(self.folder)
        os.environ["AFTERWORD_STORE__URL"] = f"sqlite:///{self.folder}/afterword.db"
        sys.argv = ["afterword", *arguments, "--json"]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = int(ended.code or 0)
        if bool(code) != fails:
            raise SystemExit(f"{' '.join(arguments)} ended with {code}: {out.getvalue()}")
        return json.loads(out.getvalue()) if out.getvalue().strip() else None


async def record() -> None:
    """Let an agent talk, and keep its state."""
    info = ModelInfo(vision=False, function_calling=False, json_output=False, family="none", structured_output=False)
    memory = FactMemory(user="mira")
    agent = AssistantAgent("assistant", ReplayChatCompletionClient(["Noted."], model_info=info), memory=[memory])
    async with record_session(agent, user="mira", session_id="live"):
        await agent.run(task="I am allergic to shellfish.")
    await memory.close()


def ask_model(program: Program, folder: Path) -> None:
    """Process a session by a model that makes one quote up."""
    answer = facts_reply(_hobby("chess"), _hobby("golf"))
    with ScriptedEndpoint([answer, facts_reply(_hobby("golf"))]) as endpoint:
        model = {"NAME": "scripted", "BASE_URL": endpoint.base_url, "MODE": "json_schema", "MAX_RETRIES": "0"}
        os.environ.update({f"AFTERWORD_MODEL__{name}": value for name, value in model.items()})
        program("run", str(folder), "--extractor", "model")


def _hobby(value: str) -> Candidate:
    quote = Citation(turn=1, quote=f"My hobby is {value}.")
    told = f"The user's hobby is {value}."
    return Candidate(kind=Kind.ENTITY, subject="user", attribute="hobby", value=value, statement=told, evidence=[quote])


def write(folder: Path, user: str, sessions: dict[str, str], month: int) -> Path:
    """Write saved states and their manifest."""
    folder.mkdir()
    manifest = []
    for number, (name, said) in enumerate(sessions.items(), 1):
        messages = [{"content": said, "source": "user", "type": "UserMessage"}]
        state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
        (folder / f"{name}.json").write_text(json.dumps(state))
        at = f"2026-{month:02}-{number:02}T10:00:00Z"
        manifest.append({"session_id": name, "user_id": user, "path": f"{name}.json"})
        manifest[-1] |= {"started_at": at, "ended_at": at}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def fill(program: Program, folder: Path) -> None:
    """Put something into every table that the program has."""
    for user, sessions in SESSIONS.items():
        program("run", str(write(folder / user, user, sessions, 1)))
    runs = {one["source"]: one["id"] for one in program("runs", "--user", "mira")}
    program("undo", str(runs["session:diet"]))
    (allergy,) = [one for one in program("facts", "--user", "mira") if "peanut" in one["value"]]
    program("confirm", allergy["id"], "--user", "mira")
    (home,) = [one for one in program("facts", "--user", "jon") if one["value"] == "Wels"]
    said = "The user lives in Wels an der Traun."
    program("edit", home["id"], "--value", "Wels an der Traun", "--statement", said, "--user", "jon")
    program("run", str(write(folder / "dry", "mira", {"pet": LATER["pet"]}, 3)), "--dry-run")
    program("policy", "hold-all", "--user", "jon")
    program("run", str(write(folder / "held", "jon", {"held": LATER["held"]}, 3)))
    model = write(folder / "model", "mira", {"hobby": "My hobby is chess."}, 4)
    ask_model(program, model)
    asyncio.run(record())
    program("run")
    (write(folder / "broken", "jon", {"broken": ""}, 5) / "broken.json").write_text("no JSON")
    program("run", str(folder / "broken"), fails=True)
    program("schedule", "--once")
    move(program, folder)


def move(program: Program, folder: Path) -> None:
    """Forget a session, and take in an export of another store."""
    program("forget", "--session", "job", "--user", "mira", "--yes")
    if "export" in program.commands:
        (folder / "other").mkdir()
        other = Program(folder / "other")
        other("run", str(write(folder / "ana", "ana", {"first": "I live in Porto."}, 2)))
        other("export", str(folder / "ana.jsonl"))
        program("import", str(folder / "ana.jsonl"))


def answers(program: Callable[..., Any]) -> dict[str, Any]:
    """Return what the program says of its store; of the session that some programs have forgotten nothing."""
    told: dict[str, Any] = {}
    for user, names in SESSIONS.items():
        held = program("facts", "--user", user, "--all", "--as-of", "2027-01-01")
        sessions = [*(name for name in names if name != "job"), *(["live"] if user == "mira" else [])]
        told[user] = {
            "facts": held,
            "runs": program("runs", "--user", user),
            "history": {one["id"]: program("history", one["id"], "--user", user) for one in held},
            "why": {name: program("why", name, "--user", user) for name in sessions},
        }
    return told


def make(version: str, into: Path) -> None:
    """Make the store, and write both files."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        program = Program(folder)
        fill(program, folder)
        told = answers(program)
        with sqlite3.connect(folder / "afterword.db") as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors'").fetchone():
                db.execute("INSERT INTO vectors VALUES (1, 'lengths', 2, 'key', x'0102')")
            statements = "\n".join(db.iterdump()).replace(made, "saved")
    (into / f"{version}.sql").write_text(statements + "\n", encoding="utf-8")
    (into / f"{version}.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]).resolve())
