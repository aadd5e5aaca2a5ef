"""The stored answers to requests hold no words, so that nothing of a forgotten session stays in them."""

from __future__ import annotations

from pathlib import Path

import afterword
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from service import serving

SESSIONS = "/v1/scopes/default/user/mira/sessions"


def files_with(word: bytes, folder: Path) -> list[str]:
    return [file.name for file in folder.glob("afterword.db*") if word in file.read_bytes()]


async def test_the_reason_of_a_failure_is_stored_with_its_session_alone(tmp_path: Path) -> None:
    path = tmp_path / "afterword.db"
    state = {"Gnarlsburg": 1}
    settings = Settings(embedding=EmbeddingOptions(kind="none"))
    async with afterword.open(f"sqlite:///{path}", settings=settings) as app, serving(app) as call:
        body, headers = {"session_id": "odd", "state": state}, {"Idempotency-Key": "once"}
        refused = await call("POST", SESSIONS, json=body, headers=headers)
        assert (refused.status_code, "Gnarlsburg" in refused.json()["detail"]) == (422, True)
        assert files_with(b"Gnarlsburg", tmp_path) == []
        await app.user("mira").process(state, session_id="odd")
        assert "Gnarlsburg" in (await call("GET", f"{SESSIONS}/odd/job")).text
        await app.user("mira").forget(session="odd")
    assert files_with(b"Gnarlsburg", tmp_path) == []
