"""A memory that is renamed, merged or exported keeps what its person has decided: what is forgotten, and the pause."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

import afterword
from afterword import Afterword, RunEffect
from afterword.errors import StateConflict
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from service import said

SETTINGS = Settings(embedding=EmbeddingOptions(kind="none"))
SAID_AT = "2026-03-01T10:00:00Z"
OSLO, TEA = "I live in Oslo.", "I like green tea."


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Afterword]:
    async with afterword.open(f"sqlite:///{tmp_path}/here.db", settings=SETTINGS) as opened:
        yield opened


async def read(app: Afterword, user: str, session_id: str, text: str) -> None:
    await app.user(user).process(said(text), session_id=session_id, started_at=SAID_AT)


async def values(app: Afterword, user: str) -> set[str]:
    return {fact.value for fact in (await app.user(user).facts(status="all")).facts}


async def filled(app: Afterword, user: str) -> None:
    await read(app, user, "home", OSLO)
    await read(app, user, "drink", TEA)


async def forget(app: Afterword, user: str, way: str) -> None:
    memory = app.user(user)
    if way == "session":
        await memory.forget(session="home")
    elif way == "fact":
        (fact,) = [fact for fact in (await memory.facts()).facts if fact.value == "Oslo"]
        await memory.forget(fact=fact.id)
    else:
        await memory.forget(everything=True)
    assert "Oslo" not in await values(app, user)


async def renamed(app: Afterword, *names: str) -> list[RunEffect]:
    pairs = pairwise(f"default/user/{name}" for name in names)
    return [await app.rename(scope, to) for scope, to in pairs]


@pytest.mark.parametrize("way", ["session", "fact", "everything"])
@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
async def test_what_was_forgotten_stays_so_however_often_the_memory_is_renamed(
    app: Afterword, names: str, way: str
) -> None:
    await filled(app, "a")
    await forget(app, "a", way)
    for name, other in pairwise(names):
        await renamed(app, name, other)
        for _ in range(2):  # the second time, the session is stored here, without the words
            await read(app, other, "home", OSLO)
            assert "Oslo" not in await values(app, other)
    await app.user(names[-1]).process(said(OSLO, "I work as a baker."), session_id="home")
    assert await values(app, names[-1]) >= {"baker"}
    assert "Oslo" not in await values(app, names[-1])


@pytest.mark.parametrize("way", ["session", "fact", "everything"])
@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
async def test_what_a_renamed_memory_forgets_stays_so_under_its_first_name(
    app: Afterword, names: str, way: str
) -> None:
    await filled(app, "a")
    runs = await renamed(app, *names)
    await forget(app, names[-1], way)
    if way != "everything":  # with everything, the runs are forgotten as well
        for effect in reversed(runs):
            await app.undo(effect.run.id)
    await read(app, "a", "home", OSLO)
    assert "Oslo" not in await values(app, "a")


@pytest.mark.parametrize("undone_first", [0, 1])
async def test_a_key_opens_what_it_opened_in_whatever_order_renames_are_undone(
    app: Afterword, undone_first: int
) -> None:
    await filled(app, "a")
    made = await app.keys.create(user="a")
    runs = [effect.run.id for effect in await renamed(app, "a", "b", "c")]
    for switch in (app.undo, app.redo):
        for number in (undone_first, 1 - undone_first):
            await switch(runs[number])
            opened = (await app.keys.get(made.key.id)).scope
            assert opened is not None
            assert await values(app, opened.id) == {"Oslo", "green tea"}


async def test_a_memory_gets_no_name_that_the_key_of_somebody_else_opens(app: Afterword) -> None:
    await filled(app, "a")
    made = await app.keys.create(user="b")
    with pytest.raises(StateConflict, match="key opens"):
        await app.rename("default/user/a", "default/user/b")
    assert await values(app, "b") == set()
    await app.keys.revoke(made.key.id)
    await app.rename("default/user/a", "default/user/b")
    assert await values(app, "b") == {"Oslo", "green tea"}


async def test_a_session_of_its_own_is_not_forgotten_with_one_of_the_same_id(app: Afterword) -> None:
    for user in "ab":
        await filled(app, user)
    await forget(app, "a", "session")
    await app.merge("default/user/a", into="default/user/b")
    await app.user("b").process(said(OSLO, "I work as a baker."), session_id="home", started_at=SAID_AT)
    assert await values(app, "b") == {"Oslo", "green tea", "baker"}


async def test_a_scope_that_is_taken_over_later_by_a_former_name_is_none_of_the_memory(app: Afterword) -> None:
    await filled(app, "a")
    await renamed(app, "a", "b")
    await read(app, "x", "pet", "I live in Bergen.")
    (fact,) = (await app.user("x").facts()).facts
    await app.user("x").forget(fact=fact.id)
    await read(app, "x", "drink", TEA)
    await app.merge("default/user/x", into="default/user/a")
    await read(app, "b", "pet", "I live in Bergen.")
    assert await values(app, "b") == {"Oslo", "green tea", "Bergen"}


@pytest.mark.parametrize("way", ["session", "fact", "everything"])
@pytest.mark.parametrize("is_whole", [True, False])
async def test_an_export_after_a_rename_knows_what_was_forgotten(
    app: Afterword, tmp_path: Path, is_whole: bool, way: str
) -> None:
    await filled(app, "a")
    await forget(app, "a", way)
    await renamed(app, "a", "b", "c")
    path = tmp_path / "memory.jsonl"
    await (app.export(path) if is_whole else app.user("c").export(path, readable=False))
    async with afterword.open(f"sqlite:///{tmp_path}/there.db", settings=SETTINGS) as there:
        for _ in range(2):
            await there.import_(path)
            await read(there, "c", "home", OSLO)
            assert "Oslo" not in await values(there, "c")


async def test_the_tombstones_of_a_renamed_memory_forget_in_a_backup_from_before(
    app: Afterword, tmp_path: Path
) -> None:
    await filled(app, "a")
    await app.backup(tmp_path / "backup.db")
    await forget(app, "a", "fact")
    await renamed(app, "a", "b", "c")
    await app.write_tombstones(tmp_path / "tombstones.jsonl", scope="default/user/c")
    async with afterword.open(f"sqlite:///{tmp_path}/backup.db", settings=SETTINGS) as restored:
        assert "Oslo" in await values(restored, "a")
        await restored.replay_tombstones(tmp_path / "tombstones.jsonl")
        assert "Oslo" not in await values(restored, "a")


async def test_a_renamed_memory_keeps_its_settings(app: Afterword) -> None:
    await filled(app, "a")
    memory = app.user("a")
    await memory.pause()
    await memory.set_policy("hold-all")
    await memory.set_zone("Asia/Tokyo")
    runs = await renamed(app, "a", "b")
    memory = app.user("b")
    assert await memory.paused()
    assert await memory.zone() == "Asia/Tokyo"
    await read(app, "b", "new", "I live in Bergen.")
    assert await values(app, "b") == {"Oslo", "green tea"}
    await memory.resume_keeping()
    await read(app, "b", "newer", "I live in Bergen.")
    assert [held.run.status for held in (await memory.review()).held] == ["held"]
    await memory.pause()
    await app.undo(runs[0].run.id)
    assert await app.user("a").paused()


@pytest.mark.parametrize("paused", ["a", "b"])
async def test_a_pause_of_either_holds_for_a_merged_memory(app: Afterword, paused: str) -> None:
    for user in "ab":
        await filled(app, user)
    await app.user(paused).pause()
    await app.merge("default/user/a", into="default/user/b")
    await read(app, "b", "new", "I live in Bergen.")
    assert "Bergen" not in await values(app, "b")


async def test_a_paused_memory_is_paused_in_another_store(app: Afterword, tmp_path: Path) -> None:
    await filled(app, "a")
    pause = await app.user("a").pause()
    path = tmp_path / "all.jsonl"
    await app.export(path)
    async with afterword.open(f"sqlite:///{tmp_path}/there.db", settings=SETTINGS) as there:
        await there.import_(path)
        imported = await there.user("a").paused()
        assert imported is not None
        assert imported.paused_at == pause.paused_at
        await there.user("a").resume_keeping()
        await there.import_(path)
        assert await there.user("a").paused() is None


async def test_an_export_of_one_memory_reaches_into_no_other(app: Afterword, tmp_path: Path) -> None:
    """It names another memory's statements as its own, judges them, and adds words to those that are here already."""
    await read(app, "mira", "home", OSLO)
    await read(app, "noor", "home", "I live in Rome.")
    await read(app, "noor", "later", "I moved to Paris.")
    await app.export(tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    scopes = [n for n, line in enumerate(lines) if line["row"] == "scope"]
    of_mira, of_noor = lines[scopes[0] : scopes[1]], lines[scopes[1] : -1]
    assert of_mira[0]["scope"] == "default/user/mira"
    stolen = [line["id"] for line in of_noor if line["row"] == "assertion"]
    judged = [line for line in of_noor if line["row"] == "verdict"]
    assert (len(stolen), len(judged)) == (2, 1)
    for line in of_mira:
        if line["row"] == "session":
            line["session_id"] = "forged"
        elif line["row"] == "assertion":
            line["evidence"].append({**line["evidence"][0], "ordinal": 7, "quote": "I live in a castle."})
        elif line["row"] == "window":
            line |= {"source": "session:forged", "key": "forged", "assertions": stolen}
        elif line["row"] == "run":
            line |= {"id": line["id"] + 100, "source": "session:forged", "session_id": "forged"}
            line |= {"windows": [["session:forged", "forged"]], "verdicts": [each["key"] for each in judged]}
    forged = [lines[0], *of_mira[:-1], *judged, of_mira[-1], {**lines[-1], "lines": len(of_mira) + len(judged)}]
    (tmp_path / "forged.jsonl").write_text("\n".join(map(json.dumps, forged)) + "\n", encoding="utf-8")
    # Facts of a run that does not count have no rows, so nothing else would refuse the ids.
    for summary in (await app.user("noor").runs()).runs:
        await app.user("noor").undo(summary.run.id)
    await app.import_(tmp_path / "forged.jsonl")
    (home,) = (await app.user("mira").facts(status="all")).facts
    assert (home.value, [cited.quote for cited in home.evidence]) == ("Oslo", [OSLO])
    assert "Rome" not in str([await app.user("mira").history(home.id), await app.user("mira").runs()])
    await app.user("mira").forget(everything=True)
    for summary in reversed((await app.user("noor").runs()).runs):
        await app.user("noor").redo(summary.run.id)
    assert await values(app, "noor") == {"Rome", "Paris"}


async def test_an_export_cannot_take_the_place_of_a_judgement_of_another_memory(app: Afterword, tmp_path: Path) -> None:
    """The key of a judgement can be worked out by whoever knows what was said, before it is judged."""
    path, forged = tmp_path / "all.jsonl", tmp_path / "forged.jsonl"
    for user in ("mira", "noor"):
        await read(app, user, "home", "I live in Rome.")
        await read(app, user, "later", "I moved to Paris.")
    await app.export(path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    of_noor = next(
        n for n, line in enumerate(lines) if (line["row"], line.get("scope")) == ("scope", "default/user/noor")
    )
    of_mira, key = lines[:of_noor], next(line["key"] for line in lines[of_noor:] if line["row"] == "verdict")
    for line in of_mira:
        if line["row"] == "verdict":
            line |= {"key": key}
        elif line["row"] == "run":
            line["verdicts"] = [key for _ in line["verdicts"]]
    shortened = [*of_mira, {**lines[-1], "lines": len(of_mira) - 1}]
    forged.write_text("\n".join(map(json.dumps, shortened)) + "\n", encoding="utf-8")
    async with afterword.open(f"sqlite:///{tmp_path}/there.db", settings=SETTINGS) as there:
        await there.import_(forged)
        await read(there, "noor", "home", "I live in Rome.")
        await read(there, "noor", "later", "I moved to Paris.")
        for user in ("mira", "noor"):
            assert [fact.value for fact in (await there.user(user).facts()).facts] == ["Paris"]
