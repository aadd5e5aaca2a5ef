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
    body = {"session_id": "odd", "state": {"Gnarlsburg": 1}}
    headers = {"Idempotency-Key": "once"}
    settings = Settings(embedding=EmbeddingOptions(kind="none"))
    async with afterword.open(f"sqlite:///{path}", settings=settings) as app, serving(app) as call:
        failed = (await call("POST", SESSIONS, json=body, headers=headers)).json()
        assert failed["result"] == "failed"
        assert "Gnarlsburg" in failed["reason"]
        again = await call("POST", SESSIONS, json=body, headers=headers)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert "reason" not in again.json()
        assert "Gnarlsburg" in (await call("GET", f"{SESSIONS}/odd/job")).text
        await app.user("mira").forget(session="odd")
    assert files_with(b"Gnarlsburg", tmp_path) == []
