"""Likely mistakes, and the one line that each of them gives. No line is a traceback, and none is longer than needed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from afterword import connect
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint
from batches import state
from commands import Commands
from rights import under_file_modes

FAILS, USAGE = 1, 2
LONGEST_LINE = 400


@dataclass(frozen=True)
class Mistake:
    """A command, what its one line says, and how it ends. `settings` are environment variables."""

    command: str
    says: str
    code: int = USAGE
    settings: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda _: None


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the first test fills."""
    return tmp_path_factory.mktemp("mistakes")


@pytest.fixture
def afterword(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    """The commands in a folder whose store holds two memories."""
    saved = prepared / "saved" / "mira"
    if not saved.exists():
        run = Commands(prepared, monkeypatch, capsys)
        run("remember", "I live in Oslo.", "--user", "mira")
        run("remember", "I live in Graz.", "--user", "jonas")
        run("remember", "I work in Graz.", "--user", "jonas")
        run("export", "there.jsonl")
        saved.mkdir(parents=True)
        (saved / "monday.json").write_text(json.dumps(state("I like tea.")))
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return Commands(tmp_path, monkeypatch, capsys)


def written(name: str, text: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return prepare


def newer_store(folder: Path) -> None:
    with sqlite3.connect(folder / "afterword.db") as store:
        store.execute("UPDATE afterword_version SET version_num = '9999'")
    store.close()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def model(**settings: str) -> dict[str, str]:
    named = {f"AFTERWORD_MODEL__{name}": value for name, value in settings.items()}
    return {"AFTERWORD_EXTRACTOR": "model", "AFTERWORD_MODEL__MAX_RETRIES": "0", **named}


MISTAKES = {
    "a command is misspelt": Mistake("fact", "No such command 'fact'"),
    "an option is misspelt": Mistake("facts --usr mira", "No such option: --usr"),
    "no memory is named": Mistake("facts", "--user NAME, or --scope tenant/kind/id"),
    "two memories are named": Mistake("facts --user mira --scope default/user/mira", "not both"),
    "a user is misspelt": Mistake("facts --user mria", "did you mean default/user/mira?", FAILS),
    "a user has another case": Mistake("recall tea --user Mira", "did you mean default/user/mira?", FAILS),
    "a user is unknown": Mistake("context --user zoe", "nothing was ever stored for default/user/zoe", FAILS),
    "a policy is set for nobody": Mistake("policy hold-all --user mria", "did you mean default/user/mira?", FAILS),
    "a scope has no kind": Mistake("facts --scope mira", "tenant/kind/id"),
    "a kind of scope is unknown": Mistake("facts --scope default/usr/mira", "user"),
    "an instant is a word": Mistake("facts --user mira --as-of yesterday", "write 2026-01-31"),
    "a kind of fact is unknown": Mistake("remember tea --user mira --kind hobby", "'preference', 'entity', 'decision'"),
    "a statement is empty": Mistake("remember  --user mira", "Missing argument"),
    "a number of a run is a word": Mistake("undo abc", "valid integer"),
    "a number of a run is huge": Mistake("undo 99999999999999999999", "no run 99999999999999999999;", FAILS),
    "a run is unknown": Mistake("undo 999", "no run 999; see `afterword runs`", FAILS),
    "a decision is about nothing": Mistake("review --approve 7 --user mira", "no item '7' in the review of", FAILS),
    "an item of the review is a word": Mistake("review --approve tea --user mira", "no item 'tea' in the", FAILS),
    "a fact is unknown": Mistake("confirm ffffffffff --user mira", "see `afterword facts --all`", FAILS),
    "an id to erase is short": Mistake("forget --fact 1 --user mira", "give at least 6 digits of its id"),
    "a session is unknown": Mistake("why nope", "no session 'nope'", FAILS),
    "a finding is unknown": Mistake("findings ffffffff --user mira", "see `afterword findings --all`", FAILS),
    "a key is unknown": Mistake("keys revoke nope", "no key 'nope'; see `afterword keys list`", FAILS),
    "a key ends in the past": Mistake("keys create --user mira --expires 2020-01-01", "which is in the past"),
    "a time zone is unknown": Mistake("zone Europe/Wien --user mira", "Europe/Wien"),
    "a memory is merged into itself": Mistake("merge default/user/mira default/user/mira", "default/user/mira", FAILS),
    "a memory is merged into none": Mistake("merge default/user/jonas default/user/mria",
                                             "did you mean default/user/mira? to give default/user/jonas", FAILS),
    "a name is taken": Mistake("rename default/user/mira default/user/jonas", "default/user/jonas", FAILS),
    "a path leads nowhere": Mistake("run nowhere", "nowhere"),
    "what is handed over is to be tried first": Mistake("run --defer --dry-run", "it takes no path, and only --json"),
    "standard input has no name": Mistake("run -", "name its session with --session"),
    "a saved state is no JSON": Mistake("run broken", "failed: bad of default/user/mira", FAILS,
                                       prepare=written("broken/mira/bad.json", "{not json")),
    "a file is of another program": Mistake("run other", "failed: x of default/user/mira", FAILS,
                                           prepare=written("other/mira/x.json", '{"a": 1}')),
    "an export would overwrite": Mistake("export there.jsonl", "there.jsonl"),
    "an export has no folder": Mistake("export no/such/folder.jsonl", "no/such/folder.jsonl cannot be written", FAILS),
    "a backup would overwrite": Mistake("backup there.jsonl", "there.jsonl"),
    "an import is missing": Mistake("import nowhere.jsonl", "there is no file nowhere.jsonl"),
    "an import is no export": Mistake("import x.txt", "x.txt", prepare=written("x.txt", "hello\n")),
    "an export of mem0 is no JSON": Mistake("import x.txt --from mem0 --user mira", "x.txt is not JSON",
                                            prepare=written("x.txt", "hello\n")),
    "tombstones are missing": Mistake("forget --replay nowhere.jsonl", "there is no file nowhere.jsonl", FAILS),
    "a profile would be overwritten": Mistake("init afterword.toml", "afterword.toml",
                                              prepare=written("afterword.toml", "")),
    "a variable is misspelt": Mistake("status", "AFTERWORD_STORE__URL", settings={"AFTERWORD_STORE_URL": "sqlite:///x"}),
    "a setting has another type": Mistake("status", "concurrency", settings={"AFTERWORD_CONCURRENCY": "many"}),
    "a key of the profile is misspelt": Mistake("status", "extractor", prepare=written("afterword.toml",
                                                                                        'extracter = "model"\n')),
    "a profile is no TOML": Mistake("status", "afterword.toml", prepare=written("afterword.toml", "[store\n")),
    "a profile is missing": Mistake("status", "nowhere.toml", settings={"AFTERWORD_PROFILE": "nowhere.toml"}),
    "a database is not supported": Mistake("status", "mysql", settings={"AFTERWORD_STORE__URL": "mysql://x/y"}),
    "a store is missing": Mistake("status", "elsewhere.db", FAILS,
                                  {"AFTERWORD_STORE__URL": "sqlite:///elsewhere.db"}),
    "a store is another file": Mistake("status", "text.db: the file is damaged or no SQLite database", FAILS,
                                       {"AFTERWORD_STORE__URL": "sqlite:///text.db"},
                                       written("text.db", "this is no database\n" * 100)),
    "a store is a folder": Mistake("status", "saved", FAILS, {"AFTERWORD_STORE__URL": "sqlite:///saved"}),
    "a store is of a newer version": Mistake("status", "newer", FAILS, prepare=newer_store),
    "a PostgreSQL server does not run": Mistake("status", "127.0.0.1", FAILS,
                                                {"AFTERWORD_STORE__URL": f"postgresql://127.0.0.1:{free_port()}/x"}),
    "a worker is given SQLite": Mistake("worker --once", "use `afterword schedule`"),
    "a rhythm cannot be read": Mistake("schedule --once", "five cron fields",
                                       settings={"AFTERWORD_SCHEDULE__PENDING": "often"}),
    "a model's address has no scheme": Mistake("run saved", "must start with http://", FAILS,
                                               model(BASE_URL="localhost:1/v1", API_KEY="k")),
    "a model's server does not run": Mistake("run saved", "no connection; check that the endpoint runs", FAILS,
                                            model(BASE_URL=f"http://127.0.0.1:{free_port()}/v1", API_KEY="k")),
    "no key for a model": Mistake("run saved", "set an API key", FAILS, model()),
    "a budget without a price": Mistake("run saved", "no price is known", settings={
        **model(BASE_URL="http://127.0.0.1:1/v1", NAME="nameless"), "AFTERWORD_BUDGET__USD_PER_DAY": "1"}),
    "scenarios are missing": Mistake("eval nowhere", "nowhere"),
}  # fmt: skip


def lines_about(printed: str, says: str) -> list[str]:
    return [line for line in printed.splitlines() if says in line]


def test_there_are_forty() -> None:
    assert len(MISTAKES) >= 40


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gives_one_line(afterword: Commands, tmp_path: Path, name: str) -> None:
    mistake = MISTAKES[name]
    mistake.prepare(tmp_path)
    printed = afterword.within(mistake.settings, *mistake.command.split(), expected=mistake.code)
    assert "Traceback" not in printed
    (line,) = lines_about(printed, mistake.says)[-1:] or [f"not said: {printed}"]
    assert mistake.says in line
    assert len(line) <= LONGEST_LINE


REPLIES: dict[str, tuple[Reply, str]] = {
    "/v1 is missing": (
        Reply(body="<!doctype html><title>Welcome</title>", headers={"content-type": "text/html; charset=utf-8"}),
        "this is a web page; is /v1 missing in the base URL?",
    ),
    "the key is wrong": (Reply(status=401), "HTTP 401; check the API key"),
    "the key may not": (Reply(status=403), "HTTP 403; check what the API key may use"),
    "the model is unknown": (Reply(status=404), "HTTP 404; check the model's name and the base URL"),
    "the server is overloaded": (Reply(status=503), "HTTP 503 after all retries; the session is tried again later"),
    "the model answers in prose": (Reply("I think so."), "no answer fitted the schema"),
}


@pytest.fixture
def endpoint() -> Iterator[tuple[ScriptedEndpoint, list[Reply]]]:
    """An endpoint, and the reply that it gives to everything."""
    replies = [Reply(status=503)]

    def answer(_: Json) -> Reply:
        return replies[0]

    with ScriptedEndpoint(answer, answers_probes=False) as serving:
        yield serving, replies


@pytest.mark.parametrize("name", REPLIES)
def test_an_endpoint_that_answers_otherwise_gives_one_line(
    afterword: Commands, endpoint: tuple[ScriptedEndpoint, list[Reply]], tmp_path: Path, name: str
) -> None:
    serving, replies = endpoint
    replies[0], says = REPLIES[name]
    settings = model(BASE_URL=serving.base_url, API_KEY="k") | {"XDG_CACHE_HOME": str(tmp_path)}
    printed = afterword.within(settings, "run", "saved", expected=FAILS)
    assert len(lines_about(printed, says)) == 1, printed
    assert "Traceback" not in printed


def test_a_beginning_of_several_ids_names_the_candidates(afterword: Commands, tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path}/afterword.db") as app:
        for number in range(16):  # with 17 facts two ids begin with the same digit
            app.user("mira").remember(f"Project {number} ships on day {number}.", subject=f"project {number}")
    ids = sorted(fact["id"] for fact in json.loads(afterword("facts", "--user", "mira", "--json")))
    shared = max((left for left, right in pairwise(ids) if left[0] == right[0]), default=ids[0])[0]
    refused = afterword("confirm", shared, "--user", "mira", expected=FAILS)
    begin_so = [id_ for id_ in ids if id_.startswith(shared)]
    assert f"{len(begin_so)} ids begin with it (" in refused
    assert begin_so[0][:8] in refused
    assert "confirm" not in afterword("confirm", ids[0][:8], "--user", "mira")


def test_an_edit_prints_the_new_id(afterword: Commands) -> None:
    (fact,) = json.loads(afterword("facts", "--user", "mira", "--json"))
    printed = afterword("edit", fact["id"], "--statement", "I live in Bergen.", "--user", "mira")
    (edited,) = json.loads(afterword("facts", "--user", "mira", "--json"))
    assert edited["id"] != fact["id"]
    assert f"{edited['id'][:8]} current: " in printed


def test_what_changes_nothing_says_so(afterword: Commands, tmp_path: Path) -> None:
    assert "imported" not in afterword("import", "there.jsonl")
    assert "nothing changed" in afterword.errors
    (tmp_path / "mem0.json").write_text(json.dumps({"results": [{"id": "1", "memory": "Likes tea"}]}))
    afterword("import", "mem0.json", "--from", "mem0", "--user", "mira")
    assert "nothing changed" not in afterword.errors
    afterword("import", "mem0.json", "--from", "mem0", "--user", "mira")
    assert "nothing changed" in afterword.errors
    afterword("forget", "--tombstones", "tombstones.jsonl")
    afterword("forget", "--replay", "tombstones.jsonl")
    assert "nothing changed" in afterword.errors


def test_an_export_to_standard_output_can_be_imported(afterword: Commands, tmp_path: Path) -> None:
    (tmp_path / "piped.jsonl").write_text(afterword("export", "-", "--user", "mira"), encoding="utf-8")
    other = {"AFTERWORD_STORE__URL": f"sqlite:///{tmp_path}/other.db"}
    afterword.within(other, "import", "piped.jsonl")
    assert "I live in Oslo." in afterword.within(other, "facts", "--user", "mira")
    assert "I live in Oslo." in afterword("export", "-", "--user", "mira", "--readable")
    assert not list(tmp_path.glob("-*"))


def test_nobody_is_paused_by_mistake(afterword: Commands) -> None:
    """The memory of a misspelt name was paused, and that of the person was not."""
    afterword("pause", "--user", "mria", expected=1)
    assert "did you mean default/user/mira?" in afterword.errors
    assert "--new" in afterword.errors
    assert "mria" not in afterword("scopes")
    assert "default/user/mria is paused" in afterword("pause", "--user", "mria", "--new")
    assert "did you mean default/user/mira?" in afterword.errors
    afterword("pause", "--user", "mira")
    assert afterword.errors == ""
    elsewhere = {"AFTERWORD_STORE__URL": "sqlite:///new.db"}
    afterword.within(elsewhere, "pause", "--user", "mira", expected=1)
    assert "--new" in afterword.errors
    assert "is paused" in afterword.within(elsewhere, "pause", "--user", "mira", "--new")


@pytest.mark.parametrize(
    "arguments",
    [
        ("remember", "I live in Rome."),
        ("keys", "create"),
        ("zone", "Asia/Tokyo"),
        ("agents", "researcher"),
        ("others", "tell"),
    ],
)
def test_what_writes_for_a_new_name_says_which_known_one_is_near(
    afterword: Commands, arguments: tuple[str, ...]
) -> None:
    afterword(*arguments, "--user", "mria")
    assert "did you mean default/user/mira?" in afterword.errors
    afterword(*arguments, "--user", "zebulon")
    assert "nothing was ever stored" not in afterword.errors


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("off the record: I am ill.", "off the record"),
        ("Off the record, I want to leave my job.", "off the record"),
        ("My password is hunter2.", "secret"),
        ("hunter2 is my password", "secret"),
        ("4111 1111 1111 1111", "secret"),
        ("The user's password for GitHub is hunter2.", "secret"),
    ],
)
def test_nothing_is_remembered_that_is_never_kept(afterword: Commands, statement: str, why: str) -> None:
    afterword("remember", statement, "--user", "mira", expected=2)
    assert why in afterword.errors
    assert "hunter2" not in afterword.errors
    fact = next(fact for fact in json.loads(afterword("facts", "--user", "mira", "--json")))
    afterword("edit", fact["id"], "--user", "mira", "--statement", statement, expected=2)
    assert why in afterword.errors
    assert len(json.loads(afterword("facts", "--user", "mira", "--all", "--json"))) == 1
    # A sentence that says something else, too, is kept without its secret.
    afterword("remember", "My card is 4111 1111 1111 1111, I bank at Acme.", "--user", "mira")


def test_runs_and_reviews_of_all_memories(afterword: Commands) -> None:
    assert {run["scope"] for run in json.loads(afterword("runs", "--json"))} == {
        "default/user/mira",
        "default/user/jonas",
    }
    assert "all memories: 3 runs" in afterword("runs")
    assert "nothing waits for a person in any memory" in afterword("review")
    afterword("policy", "hold-all", "--user", "mira")
    afterword("run", "saved")
    assert list(json.loads(afterword("review", "--json"))) == ["default/user/mira"]
    assert "default/user/mira: 0 contested, 1 held" in afterword("review")


def test_one_command_tries_again_after_an_endpoint_is_mended(
    afterword: Commands, endpoint: tuple[ScriptedEndpoint, list[Reply]], tmp_path: Path
) -> None:
    serving, replies = endpoint
    settings = model(BASE_URL=serving.base_url, API_KEY="k", MODE="json_schema")
    afterword.within(settings, "run", "saved", expected=FAILS)
    waiting = afterword.within(settings, "run", "saved")
    assert "waiting: monday" in waiting
    assert "`afterword run --retry` tries them now" in waiting
    replies[0] = Reply('{"facts": []}')
    mended = afterword.within(settings, "run", "saved", "--retry")
    assert "tried again now: 1 session that had failed" in mended
    assert json.loads(afterword("status", "--json"))["sessions"] == {"done": 1}


def test_the_schedule_says_what_failed_and_ends_with_1(
    afterword: Commands, endpoint: tuple[ScriptedEndpoint, list[Reply]], tmp_path: Path
) -> None:
    serving, replies = endpoint
    settings = model(BASE_URL=serving.base_url, API_KEY="k", MODE="json_schema")
    record(tmp_path)
    printed = afterword.within(settings, "schedule", "--once", expected=FAILS)
    (line,) = lines_about(printed, " pending: ")
    assert "done, 0 sessions processed, 1 failed: " in line
    assert "HTTP 503" in line
    assert line.startswith("20")
    replies[0] = Reply('{"facts": []}')
    assert "tried again now: 1 session" in afterword.within(settings, "run", "--retry")
    soon = settings | {"AFTERWORD_SCHEDULE__PENDING": "0.001"}
    record(tmp_path, "tuesday")
    assert "done, 1 session processed" in afterword.within(soon, "schedule", "--once")
    printed = afterword.within(soon, "schedule", "--once")
    assert "done, 0 sessions processed" in printed


def record(folder: Path, session_id: str = "monday") -> None:
    with connect(f"sqlite:///{folder}/afterword.db") as app:
        app.user("mira").queue(state("I like tea."), session_id=session_id)


def test_a_second_schedule_leaves_the_work_to_the_first(afterword: Commands) -> None:
    afterword("schedule", "--once")
    assert {report["ending"] for report in json.loads(afterword("schedule", "--once", "--json")).values()} == {
        "not due"
    }


def test_doctor_asks_no_model_that_is_not_used(afterword: Commands) -> None:
    checks = {check["check"]: check for check in json.loads(afterword("doctor", "--probe", "--json"))}
    assert checks["model"]["ok"]
    assert "not asked" in checks["model"]["found"]
    assert {check["mend"] for check in checks.values()} == {""}, "nothing is to be mended"


def test_a_locked_store_says_so(afterword: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afterword.store.database.sqlite_files.BUSY_TIMEOUT_MS", 200)
    holder = sqlite3.connect(tmp_path / "afterword.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        printed = afterword("remember", "I like tea.", "--user", "mira", expected=FAILS)
    finally:
        holder.close()
    assert "another program holds a lock on the file" in printed


def test_a_damaged_store_says_so_and_so_does_the_doctor(afterword: Commands, tmp_path: Path) -> None:
    store = tmp_path / "afterword.db"
    whole = store.read_bytes()
    store.write_bytes(whole[:60_000])
    checks = {check["check"]: check for check in json.loads(afterword("doctor", "--json", expected=FAILS))}
    commands = ("facts --user mira", "backup copy.db")
    for said in (checks["store"]["found"], *(afterword(*each.split(), expected=FAILS) for each in commands)):
        assert "the file is damaged or no SQLite database; put a backup in its place" in said
    assert "writable" not in checks["store"]["mend"]


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        ("DELETE FROM runs", "refers to a missing row of runs"),
        ("PRAGMA writable_schema=ON; DELETE FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL", "never used"),
    ],
)
def test_damage_that_no_command_meets_is_found_by_the_doctor(
    afterword: Commands, tmp_path: Path, spoil: str, found: str
) -> None:
    assert "no damage" in afterword("doctor")
    with closing(sqlite3.connect(tmp_path / "afterword.db")) as plain:
        plain.executescript(spoil)
        plain.commit()
    checks = {check["check"]: check for check in json.loads(afterword("doctor", "--json", expected=FAILS))}
    assert found in checks["integrity"]["found"]
    assert "backup" in checks["integrity"]["mend"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is one of Linux")
def test_a_full_disk_says_so(afterword: Commands, tmp_path: Path) -> None:
    import resource

    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (tmp_path / "afterword.db").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 8, hard))
    try:
        printed = afterword("remember", "I like tea. " * 10_000, "--user", "mira", expected=FAILS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "disk" in printed
    assert "Traceback" not in printed


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
@pytest.mark.skipif(sys.platform == "darwin" and os.geteuid() == 0, reason="root on macOS passes over modes")
def test_a_file_that_may_not_be_read_or_written_says_so(afterword: Commands, tmp_path: Path) -> None:
    """The modes apply to root as well, who else may read and write everything: so the test runs in a container."""
    state_file, store = tmp_path / "saved" / "mira" / "monday.json", tmp_path / "afterword.db"
    state_file.chmod(0)
    printed = under_file_modes(lambda: afterword("run", "saved", expected=FAILS))
    assert lines_about(printed, "Permission denied; check the path and its permissions"), printed
    state_file.chmod(0o600)
    afterword("remember", "I like tea.", "--user", "mira")
    for place, mode in ((store, 0o400), (tmp_path, 0o500)):
        usual = place.stat().st_mode
        place.chmod(mode)
        for command in ("facts --user mira", "status"):
            printed = under_file_modes(partial(afterword, *command.split(), expected=FAILS))
            reason = "the file and its folder must be writable, even for a program that only reads"
            assert lines_about(printed, reason), printed
        advice = under_file_modes(lambda: afterword("doctor", "--json", expected=FAILS))
        assert reason in advice
        assert "migrate" not in advice
        place.chmod(usual)


@pytest.mark.parametrize("version", ["0001", "0006"])
def test_an_old_store_is_brought_up_to_date(
    afterword: Commands, repository: Path, tmp_path: Path, version: str
) -> None:
    old = sqlite3.connect(tmp_path / "old.db")
    old.executescript((repository / "tests" / "golden" / "stores" / f"{version}.sql").read_text(encoding="utf-8"))
    old.close()
    settings = {"AFTERWORD_STORE__URL": f"sqlite:///{tmp_path}/old.db"}
    assert "memories" in afterword.within(settings, "status")
    assert "up to date" in afterword.within(settings, "migrate")
    shutil.copy(tmp_path / "old.db", tmp_path / "copy.db")
