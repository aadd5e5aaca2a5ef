"""A process that is killed leaves no file with words in the folder for temporary files: they have no names there."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import afterword as library
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from commands import Commands
from service import serving

_opened: list[str] = []
_hooked: list[bool] = []


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        _opened.append(arguments[0])


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of files that this process opens in the folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_note_opened)  # it cannot be removed
    names: list[str] = []
    _opened.clear()
    yield names
    names += [name for name in _opened if Path(name).is_relative_to(folder) and Path(name) != folder]
    assert names == []
    assert list(folder.iterdir()) == []


async def test_exports_of_the_service_have_no_name(tmp_path: Path, named: list[str]) -> None:
    settings = Settings(embedding=EmbeddingOptions(kind="none"))
    async with library.open(f"sqlite:///{tmp_path}/afterword.db", settings=settings) as app, serving(app) as call:
        await app.user("mira").remember("I live in Oslo.", attribute="home", value="Oslo")
        admin = (await app.keys.create(user="mira", admin=True)).secret
        for form in ("json", "markdown", "full"):
            answer = await call(
                "GET", "/v1/me/export", params={"form": form}, headers={"Authorization": f"Bearer {admin}"}
            )
            assert "Oslo" in answer.text
        await call.http.post("/pages/sign-in", data={"key": admin})
        for name in ("memory.md", "memory.json", "memory.jsonl"):
            answer = await call.http.get(f"/pages/default/user/mira/mine/export/{name}")
            assert "Oslo" in answer.text, answer.text


def test_an_export_to_standard_output_has_no_name(afterword: Commands, named: list[str]) -> None:
    afterword("remember", "I live in Oslo.", "--user", "mira")
    for arguments in ([], ["--user", "mira"], ["--user", "mira", "--readable"]):
        assert "Oslo" in afterword("export", "-", *arguments)
