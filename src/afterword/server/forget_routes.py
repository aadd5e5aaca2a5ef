"""Forgetting in one memory, in two steps; and its export."""

from __future__ import annotations

import hashlib
import hmac
import json
import tempfile
import time
from enum import StrEnum
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from afterword.client.json_forms import receipt_json
from afterword.server.access import AnyCaller, KeyHolder, Memory
from afterword.server.changes import Answer, Changing, change
from afterword.server.contents import ConfirmedForgetBody, ForgetBody
from afterword.server.problems import Refused

router = APIRouter()


class ExportForm(StrEnum):
    """The forms of an export."""

    JSON = "json"
    MARKDOWN = "markdown"
    FULL = "full"


FORMS = {
    ExportForm.JSON: ("json", "application/json"),
    ExportForm.MARKDOWN: ("md", "text/markdown; charset=utf-8"),
    ExportForm.FULL: ("jsonl", "application/jsonl"),
}
EXPORTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {media_type: {} for _, media_type in FORMS.values()}}
}
CONFIRMED_FOR_S = 600
"""How long a confirmation may be used."""


@router.post("/forget/preview")
async def preview_forgetting(body: ForgetBody, who: AnyCaller, memory: Memory) -> JSONResponse:
    """Return what would be erased, in counts, and the confirmation that `forget` needs. Nothing is changed."""
    receipt = await memory.preview_forget(**body.target())
    expires = int(time.time()) + CONFIRMED_FOR_S
    confirmation = f"{expires}.{_signature(who, str(memory.scope), body.target(), expires)}"
    return JSONResponse(
        {
            "preview": None if receipt is None else receipt_json(receipt),
            "confirmation": confirmation,
            "valid_s": CONFIRMED_FOR_S,
        }
    )


@router.post("/forget")
async def forget_in_two_steps(body: ConfirmedForgetBody, changing: Changing) -> JSONResponse:
    """Erase for good what was previewed, and return counts. It cannot be undone."""
    memory = changing.memory
    _check_confirmation(changing.who, str(memory.scope), body)

    async def work() -> Answer:
        receipt = await memory.forget(**body.target())
        return {"receipt": None if receipt is None else receipt_json(receipt)}

    return await changing.carried_out("forget", work, body.target())


@router.get("/export", responses=EXPORTS)
async def export_memory(who: AnyCaller, memory: Memory, form: ExportForm = ExportForm.JSON) -> Response:
    """Return the memory: its facts as JSON or Markdown, or for an admin key the file that `afterword import` takes.

    That file holds the key of the store's tombstones, so it is for those who run the store.
    """
    if form is ExportForm.FULL and not who.key.is_admin:
        raise Refused(403, "the full export needs an admin key; json and markdown do not")
    suffix, media_type = FORMS[form]

    async def work() -> Answer:
        return {}

    with tempfile.TemporaryDirectory(prefix="afterword-export-") as folder:
        path = Path(folder) / f"memory.{suffix}"
        await memory.export(path, readable=form is not ExportForm.FULL)
        content = path.read_bytes()
    await change(who, "export", work, scope=memory.scope)
    headers = {"Content-Disposition": f'attachment; filename="{path.name}"'}
    return Response(content, media_type=media_type, headers=headers)


def _signature(who: KeyHolder, scope: str, target: dict[str, Any], expires: int) -> str:
    """Return what only the holder of the key gets, for this scope and this target."""
    signed = json.dumps([scope, target, expires], sort_keys=True).encode()
    return hmac.new(who.secret.encode(), signed, hashlib.sha256).hexdigest()


def _check_confirmation(who: KeyHolder, scope: str, body: ConfirmedForgetBody) -> None:
    expires, _, signature = body.confirmation.partition(".")
    is_number = expires.isascii() and expires.isdecimal() and len(expires) < 12
    if not is_number or int(expires) < time.time():
        raise Refused(403, "this confirmation has expired; ask for a preview again")
    expected = _signature(who, scope, body.target(), int(expires))
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise Refused(403, "this confirmation belongs to something else; ask for a preview first")
