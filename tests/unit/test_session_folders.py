"""Which files a folder or a manifest may name as sessions, and whose."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.errors import ReadError
from afterword.facts.scopes import Scope
from afterword.pipeline.errors import SourceInvalid
from afterword.pipeline.intake import prepare_session
from afterword.pipeline.sources.folders import find_sessions
from afterword.store.database.engine import open_store
from service import said

MIRA = Scope.user("mira")


def state(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"messages": []}))
    return path


def manifest(folder: Path, **entry: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "manifest.json"
    path.write_text(json.dumps([{"session_id": "1", "user_id": "mira", **entry}]))
    return path


def test_two_files_of_one_session_are_no_run(tmp_path: Path) -> None:
    first, second = state(tmp_path / "may/mira/1.json"), state(tmp_path / "june/mira/1.json")
    with pytest.raises(SourceInvalid) as refused:
        find_sessions([tmp_path / "may", tmp_path / "june"])
    assert str(first) in str(refused.value)
    assert str(second) in str(refused.value)
    assert "rename" in str(refused.value)


def test_two_single_files_of_one_session_are_no_run(tmp_path: Path) -> None:
    paths = [state(tmp_path / "may/1.json"), state(tmp_path / "june/1.json")]
    with pytest.raises(SourceInvalid, match="both session"):
        find_sessions(paths, scope=MIRA)


def test_one_file_named_twice_is_one_file(tmp_path: Path) -> None:
    state(tmp_path / "mira/1.json")
    assert find_sessions([tmp_path, tmp_path])


@pytest.mark.parametrize("path", ["../secret.json", "a/../../secret.json", "link.json", "inside/secret.json"])
def test_a_manifest_stays_in_its_folder(tmp_path: Path, path: str) -> None:
    secret = state(tmp_path / "secret.json")
    listed = manifest(tmp_path / "saved", path=path)
    (tmp_path / "saved/a").mkdir()
    (tmp_path / "saved/link.json").symlink_to(secret)
    (tmp_path / "saved/inside").symlink_to(tmp_path)
    for sources in ([listed], [tmp_path / "saved"], [tmp_path]):
        with pytest.raises(SourceInvalid, match=r"session '1' names .* out of the manifest's folder"):
            find_sessions(sources, scope=MIRA if sources == [tmp_path] else None)
    (saved,) = find_sessions([listed], trust_manifest=True)
    assert saved.path is not None
    assert saved.path.resolve() == secret


def test_an_absolute_path_of_a_manifest_must_lie_below_it_too(tmp_path: Path) -> None:
    inside, outside = state(tmp_path / "saved/1.json"), state(tmp_path / "2.json")
    assert find_sessions([manifest(tmp_path / "saved", path=str(inside))])
    with pytest.raises(SourceInvalid, match="out of the manifest"):
        find_sessions([manifest(tmp_path / "saved", path=str(outside))])


def test_a_manifest_in_a_folder_that_is_reached_by_a_link_reads_below_it(tmp_path: Path) -> None:
    state(tmp_path / "saved/1.json")
    manifest(tmp_path / "saved", path="1.json")
    (tmp_path / "link").symlink_to(tmp_path / "saved")
    assert find_sessions([tmp_path / "link"])


def test_a_manifest_names_no_other_scope_than_the_callers(tmp_path: Path) -> None:
    state(tmp_path / "1.json")
    listed = manifest(tmp_path, path="1.json", user_id="jon")
    with pytest.raises(SourceInvalid, match=r"session '1' is of default/user/jon"):
        find_sessions([listed], scope=MIRA)
    assert [saved.scope for saved in find_sessions([listed])] == [Scope.user("jon")]
    assert [saved.scope for saved in find_sessions([listed], scope=MIRA, trust_manifest=True)] == [MIRA]
    listed = manifest(tmp_path, path="1.json", user_id=None)
    assert [saved.scope for saved in find_sessions([listed], scope=MIRA)] == [MIRA]


def test_a_symbolic_link_is_no_folder_of_a_user(tmp_path: Path) -> None:
    state(tmp_path / "elsewhere/1.json")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved/mira").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceInvalid, match=r"mira is a symbolic link"):
        find_sessions([tmp_path / "saved"])


@pytest.mark.parametrize("scope", [None, MIRA])
def test_a_symbolic_link_that_leads_out_of_its_folder_is_no_session(tmp_path: Path, scope: Scope | None) -> None:
    others = state(tmp_path / "noor/1.json")
    folder = tmp_path / "mira"
    state(folder / "2.json")
    (folder / "linked.json").symlink_to(folder / "2.json")
    root = tmp_path if scope is None else folder
    assert find_sessions([root], scope=scope)
    (folder / "stolen.jsonl").symlink_to(others)
    with pytest.raises(SourceInvalid, match=r"stolen.jsonl is a symbolic link that leads out"):
        find_sessions([root], scope=scope)


def test_where_folders_stand_for_users_a_manifest_names_its_own_user(tmp_path: Path) -> None:
    state(tmp_path / "noor/1.json")
    state(tmp_path / "mira/2.json")
    manifest(tmp_path / "mira", path="2.json", session_id="planted", user_id="noor")
    with pytest.raises(SourceInvalid, match="is of default/user/noor, and only default/user/mira"):
        find_sessions([tmp_path])
    assert len(find_sessions([tmp_path], trust_manifest=True)) == 2
    manifest(tmp_path / "mira", path="2.json", user_id=None)
    assert {saved.scope for saved in find_sessions([tmp_path])} == {MIRA, Scope.user("noor")}


@pytest.mark.parametrize(
    ("swapped", "is_listed"),
    [
        *(("1.json", True), ("deep/1.json", True), ("deep", True), (".", True), ("1.jsonl", True)),
        *(("1.json", False), (".", False), ("1.jsonl", False)),
    ],
)
async def test_a_link_that_appears_after_the_files_were_listed_is_not_followed(
    tmp_path: Path, swapped: str, is_listed: bool
) -> None:
    mine, others = tmp_path / "saved" / "mira", tmp_path / "noor"
    name = {"deep": "deep/1.json", ".": "1.json"}.get(swapped, swapped)
    for folder in (mine, others):
        state(folder / name).write_text(json.dumps(said("I live in Oslo." if folder is mine else "I live in Quito.")))
    if is_listed:
        manifest(mine, path=name, started_at="2026-03-01T10:00:00Z")
    (found,) = find_sessions([tmp_path / "saved"])
    async with await open_store("sqlite://") as store:
        assert "Oslo" in str((await prepare_session(store, found, "1")).transcript.turns)
        (mine / swapped).rename(tmp_path / "before")
        (mine / swapped).symlink_to(others / swapped)
        with pytest.raises(ReadError):
            await prepare_session(store, found, "1")


async def test_a_link_within_the_folder_is_followed_when_it_is_read(tmp_path: Path) -> None:
    state(tmp_path / "saved/mira/.kept/1.json").write_text(json.dumps(said("I live in Oslo.")))
    (tmp_path / "saved/mira/1.json").symlink_to(".kept/1.json")
    (tmp_path / "link").symlink_to(tmp_path / "saved")
    (found,) = find_sessions([tmp_path / "link"])
    async with await open_store("sqlite://") as store:
        assert "Oslo" in str((await prepare_session(store, found, "1")).transcript.turns)


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_no_calendar_has_in_utc_is_named_in_a_manifest(tmp_path: Path, written: str) -> None:
    state(tmp_path / "1.json")
    for field in ("started_at", "ended_at"):
        with pytest.raises(SourceInvalid, match=f"{field}.*no instant"):
            find_sessions([manifest(tmp_path, path="1.json", **{field: written})])


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon", 12345, None])
def test_a_time_that_cannot_be_read_costs_no_session_of_a_database(tmp_path: Path, written: object) -> None:
    with closing(sqlite3.connect(tmp_path / "sdk.db")) as database, database:
        database.execute("CREATE TABLE agent_sessions (session_id)")
        database.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data, created_at)")
        insert = "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (?, '{}', ?)"
        database.executemany(insert, [("monday", "2026-03-02"), ("tuesday", written), (None, None), (b"x", None)])
    found = find_sessions([tmp_path / "sdk.db"], scope=MIRA)
    assert {saved.session_id for saved in found} == {"monday", "tuesday"}


@pytest.mark.parametrize("path", ["a\0b.json", "loop.json"])
def test_a_path_that_leads_nowhere_is_named_in_a_manifest(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop.json").symlink_to("other.json")
    (tmp_path / "other.json").symlink_to("loop.json")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps([{"session_id": "s", "path": path, "user_id": "mira"}]), encoding="utf-8")
    with pytest.raises(SourceInvalid, match=r"'s' names .* which is no path"):
        find_sessions([tmp_path])


def test_a_control_character_in_the_name_of_a_file_is_none_in_the_id_of_its_session(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J\nb.json").write_text("{}", encoding="utf-8")
    (saved,) = find_sessions([tmp_path], scope=Scope.user("mira"))
    assert saved.session_id == "a\ufffd[2J\ufffdb"
