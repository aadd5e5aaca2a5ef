"""No other library tells the tracing of an application what people asked, or whose memory was opened."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from opentelemetry.sdk.trace import ReadableSpan

import afterword
from afterword import Afterword
from afterword.settings import Settings
from browsing import visiting
from mcp_clients import call, client_of, error_of, server_of
from observing import listening
from service import serving

WORD, NAME = "Quuxville", "zanzibarella"


@pytest.fixture
async def app() -> AsyncIterator[Afterword]:
    settings = Settings.model_validate({"embedding": {"kind": "none"}})
    async with afterword.open("sqlite://", settings=settings) as opened:
        await opened.user(NAME).remember(f"I live in {WORD}.")
        yield opened


def told(span: ReadableSpan) -> str:
    events: Any = [(event.name, dict(event.attributes or {})) for event in span.events]
    return f"{span.name} {dict(span.attributes or {})} {events} {span.status.description}"


async def test_the_service_tells_no_address_and_no_question(app: Afterword, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="afterword")
    with listening() as heard:
        async with serving(app) as service:
            for path in (f"/v1/me/recall?q={WORD}", f"/v1/scopes/default/user/{NAME}/facts", f"/v1/me/facts/{WORD}"):
                await service("GET", path, user=NAME)
            await service("POST", "/v1/me/facts", user=NAME, json={"statement": f"I own {WORD}."})
        async with visiting(app) as visitor:
            await visitor.http.get(f"/pages/default/user/{NAME}/memory?q={WORD}")
    assert heard.named("afterword.search") or heard.named("afterword.recall")
    assert [told(span) for span in heard.others] == []
    assert [told(span) for span in heard.spans if WORD in told(span) or NAME in told(span)] == []
    assert WORD not in caplog.text
    assert NAME not in caplog.text


async def test_the_mcp_server_tells_no_word_of_a_client_and_no_text_of_an_error(app: Afterword) -> None:
    with listening() as heard:
        async with client_of(server_of(app.user(NAME))) as client:
            await call(client, "recall", query=WORD)
            await error_of(client, "get_fact", fact_id=WORD)
            await client.call_tool(f"tool of {WORD}", {})
            with pytest.raises(MCPError):
                await client.read_resource(f"memory://{WORD}")
    # The client is the SDK's too, and its spans are those of the other program.
    of_server = [span for span in heard.others if span.kind.name == "SERVER"]
    assert [told(span) for span in of_server] == []
    assert [told(span) for span in heard.spans if WORD in told(span) or NAME in told(span)] == []
