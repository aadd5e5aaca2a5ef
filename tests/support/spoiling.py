"""Every fault of a model: how the right reply to a request is spoilt, and which error is told of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from afterword.extractors.candidates import Answer
from afterword.extractors.testing import Json, Reply, completion, schema_of

TEN_MEGABYTES = "word " * 2_000_000
SLOW_S = 0.2


@dataclass(frozen=True, slots=True)
class Fault:
    """How the right reply is spoilt, by the request; and the error that is told of it, None where it does no harm."""

    spoilt: Callable[[Json, Reply], Reply]
    error: str | None


def _always(reply: Reply, error: str) -> Fault:
    return Fault(lambda request, right: reply, error)


def _schema(request: Json, right: Reply) -> Reply:
    return Reply(json.dumps(schema_of(request) or Answer.model_json_schema()))


def _dropped(request: Json, right: Reply) -> Reply:
    """The right answer, of which the connection gives a part and then ends."""
    body = json.dumps(completion(request, right))
    return Reply(body=body[: len(body) // 2], headers={"Content-Length": str(len(body)), "retry-after-ms": "1"})


def _slow(request: Json, right: Reply) -> Reply:
    time.sleep(SLOW_S)
    return right


def _split(request: Json, right: Reply) -> Reply:
    """The answer in two calls of the tool: what was found in the first, nothing in the second."""
    return replace(right, calls=[json.dumps({name: [] for name in json.loads(right.content)})])


def _in_german(request: Json, right: Reply) -> Reply:
    return replace(right, content=right.content.replace("The user lives in", "Der Nutzer wohnt in"))


FAULTS: dict[str, Fault] = {
    "rate-limit": _always(Reply(status=429), "EndpointUnavailable"),
    "server-error": _always(Reply(status=500), "EndpointUnavailable"),
    "overloaded": _always(Reply(status=503), "EndpointUnavailable"),
    "timeout": _always(Reply(hangs=True), "EndpointUnavailable"),
    "dropped": Fault(_dropped, "EndpointUnavailable"),
    "no-connection": _always(Reply(), "EndpointUnavailable"),
    "wrong-key": _always(Reply(status=401), "EndpointMisconfigured"),
    "no-such-model": _always(Reply(status=404), "EndpointMisconfigured"),
    "bad-request": _always(Reply(status=400), "EndpointMisconfigured"),
    "too-long": _always(Reply(status=400, code="context_length_exceeded"), "AnswerCut"),
    "too-large": _always(Reply(status=413), "AnswerCut"),
    "cut": Fault(lambda _, right: Reply(right.content[:30], finish_reason="length"), "AnswerCut"),
    "cut-but-whole": Fault(lambda _, right: replace(right, finish_reason="length"), "AnswerCut"),
    "refusal": _always(Reply(refusal="I would rather not."), "AnswerRefused"),
    "withheld": _always(Reply(finish_reason="content_filter"), "AnswerRefused"),
    "withheld-in-part": _always(
        Reply('{"facts": [], "findings": []}', finish_reason="content_filter"), "AnswerRefused"
    ),
    "no-choices": _always(Reply(choices=False), "AnswerInvalid"),
    "empty": _always(Reply(""), "AnswerInvalid"),
    "prose-only": _always(Reply("Happy to help! I found nothing of note."), "AnswerInvalid"),
    "empty-example": _always(Reply('For example {"facts": [], "findings": []} would do.'), "AnswerInvalid"),
    "two-answers": Fault(lambda _, right: Reply(f"{right.content} or {right.content}"), "AnswerInvalid"),
    "other-shape": _always(Reply('{"memories": ["x"]}'), "AnswerInvalid"),
    "schema-echoed": Fault(_schema, "AnswerInvalid"),
    "ten-megabytes": _always(Reply(TEN_MEGABYTES), "AnswerInvalid"),
    "garbage-bytes": _always(Reply(body=b'\xff\xfe{"choices"\x00'), "AnswerInvalid"),
    "html-page": _always(
        Reply(body="<html>log in</html>", headers={"Content-Type": "text/html"}), "EndpointMisconfigured"
    ),
    "error-with-200": _always(Reply(body='{"error": {"message": "no"}}'), "AnswerInvalid"),
    "unparted-calls": Fault(lambda _, right: replace(right, calls=["{"]), "AnswerInvalid"),
    "prose-around": Fault(lambda _, right: replace(right, content=f"Sure!\n{right.content}\nMore?"), None),
    "fenced": Fault(lambda _, right: replace(right, content=f"```json\n{right.content}\n```"), None),
    "wrong-tool": Fault(lambda _, right: replace(right, tool_name="another"), None),
    "two-calls": Fault(_split, None),
    "slow": Fault(_slow, None),
    "no-usage": Fault(lambda _, right: replace(right, usage=False), None),
    "other-language": Fault(_in_german, None),
}
