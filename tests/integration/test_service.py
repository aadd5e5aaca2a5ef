"""The HTTP service: every route, and the program that was written for another memory."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import afterword
from afterword import Afterword
from afterword.setting_sections import ModelOptions
from afterword.settings import Settings
from service import ServiceClient, said, serving

MONDAY, FRIDAY = "2026-03-02T10:00:00Z", "2026-03-06T10:00:00Z"


@pytest.fixture(params=["file", "postgres"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Afterword]:
    is_file = request.param == "file"
    url = f"sqlite:///{tmp_path}/afterword.db" if is_file else str(request.getfixturevalue("postgres_store_url"))
    async with afterword.open(url, settings=Settings()) as opened:
        yield opened


@pytest.fixture
async def call(app: Afterword) -> AsyncIterator[ServiceClient]:
    async with serving(app) as client:
        yield client


@pytest.fixture
async def two_sessions(call: ServiceClient) -> dict[str, Any]:
    """Mira's memory after two sessions: on Friday she said that she had moved."""
    monday = {"session_id": "monday", "state": said("I live in Porto. I prefer window seats."), "started_at": MONDAY}
    assert (await call("POST", "/v1/me/sessions", json=monday)).json()["result"] == "done"
    friday = {"session_id": "friday", "state": said("I moved to Oslo."), "started_at": FRIDAY}
    answer: dict[str, Any] = (await call("POST", "/v1/me/sessions", json=friday)).json()
    return answer


async def until(
    call: ServiceClient, path: str, is_there: Callable[[dict[str, Any]], object], **arguments: Any
) -> dict[str, Any]:
    """Ask until the answer fits, and return it."""
    for _ in range(1200):
        content: dict[str, Any] = (await call("GET", path, **arguments)).json()
        if is_there(content):
            return content
        await asyncio.sleep(0.05)
    raise AssertionError(path)


async def test_probes_need_no_key_and_tell_nothing(call: ServiceClient) -> None:
    for path in ("/healthz", "/readyz"):
        answer = await call.http.get(path)
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert answer.json().get("failed_jobs", []) == []


async def test_remember_and_recall(call: ServiceClient) -> None:
    answer = await call("POST", "/v1/memory/remember", json={"content": "I live in Oslo.", "tags": ["home", "city"]})
    assert answer.status_code == 200
    first = answer.json()["id"]
    await call("POST", "/v1/memory/remember", json={"content": "The build takes 41 seconds.", "tags": ["ci"]})
    memories = (await call("GET", "/v1/memory/recall", params={"q": "Oslo", "limit": 5})).json()["memories"]
    assert memories[0]["id"] == first
    assert memories[0]["content"] == "I live in Oslo."
    assert memories[0]["tags"] == ["home", "city"]
    assert memories[0]["score"] > 0
    assert memories[0]["created_at"].endswith("Z")
    for tags in ({"tags": "ci"}, {"tags": ["ci"]}):
        found = (await call("GET", "/v1/memory/recall", params={"q": "", **tags})).json()["memories"]
        assert [(memory["content"], memory["about"]) for memory in found] == [("The build takes 41 seconds.", "note")]
    assert (await call("GET", "/v1/memory/recall", params={"tags": "ci,home"})).json() == {"memories": []}


async def test_a_tag_with_a_comma_is_refused_since_recall_separates_tags_by_it(call: ServiceClient) -> None:
    for path, text in (("/v1/memory/remember", "content"), ("/v1/me/facts", "statement")):
        refused = await call("POST", path, json={text: "I live in Oslo.", "tags": ["home", "a, b"]})
        assert (refused.status_code, "no comma" in refused.json()["detail"]) == (400, True)
    assert (await call("GET", "/v1/me/facts", params={"tag": "a, b"})).json()["total"] == 0


async def test_a_finding_is_never_merged_into_a_persons_facts(call: ServiceClient) -> None:
    await call("POST", "/v1/memory/remember", json={"content": "Lives in Oslo: 3 of 5 customers", "tags": ["survey"]})
    for number, text in enumerate(("I live in Oslo.", "I moved to Porto.")):
        body = {"session_id": f"s{number}", "state": said(text), "started_at": MONDAY}
        await call("POST", "/v1/me/sessions", json=body)
    found = (await call("GET", "/v1/memory/recall", params={"q": "customers"})).json()["memories"]
    assert found[0]["content"] == "Lives in Oslo: 3 of 5 customers"
    facts = (await call("GET", "/v1/me/facts", params={"about": "user", "status": "all"})).json()["facts"]
    assert not any("customers" in fact["statement"] for fact in facts)


async def test_facts_are_paged_and_filtered(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    held = (await call("GET", "/v1/me/facts")).json()
    assert {fact["value"] for fact in held["facts"]} == {"Oslo", "window seats"}
    assert (await call("GET", "/v1/scopes/default/user/mira/facts")).json() == held
    everything = (await call("GET", "/v1/me/facts", params={"status": "all"})).json()
    first = (await call("GET", "/v1/me/facts", params={"status": "all", "limit": 1})).json()
    rest = (await call("GET", "/v1/me/facts", params={"status": "all", "after": first["next"]})).json()
    assert first["facts"] + rest["facts"] == everything["facts"]
    before = (await call("GET", "/v1/me/facts", params={"as_of": "2026-03-03"})).json()
    assert "Porto" in {fact["value"] for fact in before["facts"]}
    assert (await call("GET", "/v1/me/facts", params={"as_of": "yesterday"})).status_code == 400


async def test_an_etag_spares_what_the_caller_has(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    first = await call("GET", "/v1/me/facts")
    again = await call("GET", "/v1/me/facts", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    await call("POST", "/v1/me/facts", json={"statement": "I like tea."})
    changed = await call("GET", "/v1/me/facts", headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200


async def test_a_fact_with_its_history(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    (porto,) = (await call("GET", "/v1/me/facts", params={"status": "superseded"})).json()["facts"]
    origin = (await call("GET", f"/v1/me/facts/{porto['id']}")).json()
    assert origin["said"][0]["quotes"] == ["I live in Porto."]
    assert origin["verdicts"][0]["later"] == "The user moved to Oslo."
    assert (await call("GET", f"/v1/me/facts/{porto['id']}", user="noor")).status_code == 404
    assert (await call("GET", "/v1/me/facts/000000")).status_code == 404


async def test_changes_of_facts_are_runs_with_an_actor(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    (oslo,) = two_sessions["learned"]
    edited = (await call("PATCH", f"/v1/me/facts/{oslo}", json={"value": "Bergen"})).json()
    assert edited["status"] == "applied"
    (fact_id,) = [
        fact["id"] for fact in (await call("GET", "/v1/me/facts")).json()["facts"] if fact["value"] == "Bergen"
    ]
    for action, body in (("confirm", None), ("flag", {"flagged": True}), ("withdraw", None)):
        answer = await call("POST", f"/v1/me/facts/{fact_id}/{action}", json=body)
        assert answer.status_code == 200, answer.text
    refused = await call("POST", f"/v1/me/facts/{oslo}/withdraw")
    assert refused.status_code == 409
    assert f"was replaced by {fact_id[:8]}" in refused.json()["detail"]
    runs = (await call("GET", "/v1/me/runs", params={"limit": 100})).json()["runs"]
    key_id = (await call.app.keys.list())[0].id
    assert {run["actor"] for run in runs} == {key_id}
    last = runs[-1]["id"]
    assert (await call("POST", f"/v1/me/runs/{last}/undo")).json()["status"] == "undone"
    assert (await call("POST", f"/v1/me/runs/{last}/redo")).json()["status"] == "applied"
    assert (await call("POST", f"/v1/me/runs/{last}/apply")).status_code == 409
    assert (await call("POST", f"/v1/me/runs/{last}/undo", user="noor")).status_code == 404
    actions = [entry.action for entry in (await call.app.audit()).entries]
    assert actions[:5] == ["undo", "apply", "redo", "undo", "withdraw"]


async def test_a_run_in_another_state_is_a_conflict(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    run = two_sessions["run"]
    for action, status in (("apply", 409), ("redo", 409), ("undo", 200), ("undo", 409), ("apply", 409), ("redo", 200)):
        answer = await call("POST", f"/v1/me/runs/{run}/{action}")
        assert answer.status_code == status, (action, answer.text)
    refused = (await call("POST", f"/v1/me/runs/{run}/redo")).json()["detail"]
    assert refused == f"run {run} of default/user/mira is applied, not undone"
    assert (await call("POST", "/v1/me/runs/99999/undo")).status_code == 404


async def test_a_correction_that_says_the_same_is_refused(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    (oslo,) = two_sessions["learned"]
    before = (await call("GET", f"/v1/me/facts/{oslo}")).json()["fact"]
    for same in ({"statement": f" {before['statement']} "}, {"value": "Oslo"}, {"about": "user", "value": "Oslo"}):
        answer = await call("PATCH", f"/v1/me/facts/{oslo}", json=same)
        assert (answer.status_code, "says this already" in answer.json()["detail"]) == (400, True)
    assert (await call("GET", f"/v1/me/facts/{oslo}")).json()["fact"] == before


async def test_of_corrections_at_the_same_time_one_holds(call: ServiceClient) -> None:
    body = {"session_id": "tea", "state": said("I like tea."), "started_at": MONDAY}
    (tea,) = (await call("POST", "/v1/me/sessions", json=body)).json()["learned"]
    values = ("coffee", "juice", "cocoa", "water")
    answers = await asyncio.gather(*(call("PATCH", f"/v1/me/facts/{tea}", json={"value": value}) for value in values))
    assert {answer.status_code for answer in answers} == {200}
    (fact,) = (await call("GET", "/v1/me/facts")).json()["facts"]
    assert fact["value"] in values


async def test_undoing_a_session_names_the_facts_that_are_gone(call: ServiceClient) -> None:
    body = {"session_id": "monday", "state": said("I live in Porto. I prefer window seats."), "started_at": MONDAY}
    done = (await call("POST", "/v1/me/sessions", json=body)).json()
    undone = (await call("POST", f"/v1/me/runs/{done['run']}/undo")).json()
    redone = (await call("POST", f"/v1/me/runs/{done['run']}/redo")).json()
    assert set(undone["facts"]) == set(redone["facts"]) == set(done["learned"])


async def test_a_body_that_is_no_json_is_named(call: ServiceClient) -> None:
    answer = await call("POST", "/v1/me/facts", content="{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, [fault["field"] for fault in answer.json()["errors"]]) == (422, ["body"])


async def test_a_session_with_its_transcript(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    sessions = (await call("GET", "/v1/me/sessions", params={"state": "done"})).json()
    assert [session["session_id"] for session in sessions["sessions"]] == ["monday", "friday"]
    monday = (await call("GET", "/v1/me/sessions/monday")).json()
    assert monday["transcript"][0]["text"] == "I live in Porto. I prefer window seats."
    assert len(monday["transcript"][0]["facts"]) == 2
    assert (await call("POST", "/v1/me/sessions/monday/reprocess")).json()["result"] in ("done", "unchanged")


@pytest.mark.parametrize("queue", [False, True])
@pytest.mark.parametrize("state", [{}, {"no": "conversation"}, {"llm_context": {"messages": 7}}, ["a"]])
async def test_a_state_that_is_no_conversation_is_refused(call: ServiceClient, state: object, queue: bool) -> None:
    """Nothing of it is kept, so that the session can be sent again as it should be."""
    body = {"session_id": "broken", "state": state, "queue": queue}
    answer = await call("POST", "/v1/me/sessions", json=body, headers={"Idempotency-Key": "once"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert "no saved conversation is recognised" in answer.json()["detail"]
    assert (await call("GET", "/v1/me/sessions")).json()["total"] == 0


async def test_a_session_that_is_sent_while_the_model_is_away_is_tried_again(app: Afterword) -> None:
    dead = ModelOptions(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    settings = app.settings.model_copy(update={"extractor": "model", "model": dead})
    async with afterword.open(settings=settings, store=await app.store()) as deaf, serving(deaf) as call:
        answer = await call("POST", "/v1/me/sessions", json={"session_id": "monday", "state": said("I live in Oslo.")})
    assert (answer.status_code, answer.json()["result"]) == (200, "failed")
    await app.retry("monday")
    await app.run_pending()
    assert [fact.value for fact in (await app.user("mira").facts()).facts] == ["Oslo"]


async def test_a_paused_memory_keeps_nothing_of_a_session_that_is_sent(call: ServiceClient) -> None:
    await call.app.user("mira").pause()
    answer = await call("POST", "/v1/me/sessions", json={"session_id": "monday", "state": said("I live in Oslo.")})
    assert (answer.status_code, answer.json()) == (200, {"result": "paused"})
    pause = await call.app.user("mira").paused()
    assert pause is not None
    assert pause.sessions_not_kept == 1
    assert (await call.app.user("mira").sessions()).total == 0


async def test_a_state_has_the_same_times_sent_at_once_or_queued(call: ServiceClient) -> None:
    """Who sends it without a time has just had the conversation: that is no guess, and may retire a fact."""
    times = []
    for user, queue in (("mira", False), ("noor", True)):
        first = {"session_id": "first", "state": said("I live in Porto."), "started_at": MONDAY}
        assert (await call("POST", "/v1/me/sessions", json=first, user=user)).json()["result"] == "done"
        for texts in (["I moved to Oslo."], ["I moved to Oslo.", "I like tea."]):
            body = {"session_id": "live", "state": said(*texts), "queue": queue}
            await call("POST", "/v1/me/sessions", json=body, user=user)
            path = "/v1/me/sessions/live"
            await until(call, f"{path}/job", lambda content: content["progress"] == "done", user=user)
        session = (await call("GET", path, user=user)).json()
        moved, liked = (turn["said_at"] for turn in session["transcript"])
        facts = (await call("GET", "/v1/me/facts", params={"status": "all"}, user=user)).json()["facts"]
        times.append((session["time_basis"], moved < liked, {fact["value"]: fact["status"] for fact in facts}))
    assert times == [("recorder", True, {"Porto": "superseded", "Oslo": "current", "tea": "current"})] * 2


async def test_a_queued_session_is_processed_later(call: ServiceClient) -> None:
    body = {"session_id": "a/b %2F", "state": said("I live in Oslo."), "started_at": MONDAY, "queue": True}
    answer = await call("POST", "/v1/me/sessions", json=body)
    assert (answer.status_code, answer.json()) == (202, {"progress": "pending"})
    job = await until(call, answer.headers["Location"], lambda content: content["progress"] != "pending")
    assert (job["progress"], job["session_id"]) == ("done", "a/b %2F")
    assert (await call("GET", "/v1/me/facts")).json()["facts"][0]["value"] == "Oslo"
    listed = {"session_id": "list", "state": [{"role": "user", "content": "I like tea."}], "started_at": MONDAY}
    assert (await call("POST", "/v1/me/sessions", json=listed)).json()["result"] == "done"


async def test_a_session_is_processed_beside_the_thread_that_answers(
    call: ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Others are answered meanwhile, and its run still names the key that asked for it."""
    body = {"session_id": "monday", "state": said("I like tea."), "started_at": MONDAY}
    with caplog.at_level(logging.INFO, logger="afterword"):
        assert (await call("POST", "/v1/me/sessions", json=body)).json()["result"] == "done"
    (record,) = [record for record in caplog.records if record.getMessage().startswith("session ")]
    assert record.thread != threading.get_ident()
    assert (await call("GET", "/v1/me/runs")).json()["runs"][-1]["actor"] is not None


async def test_recall_and_context(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    found = (await call("GET", "/v1/me/recall", params={"q": "Oslo window seats"})).json()["found"]
    assert {hit["layer"] for hit in found} == {"now", "said"}
    block = (await call("GET", "/v1/me/context", params={"q": "home", "budget_tokens": 500})).json()
    assert "Oslo" in block["text"]
    also = await call("GET", "/v1/me/context", params={"also": "default/user/noor"})
    assert also.status_code == 404


async def test_the_review(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    await call.app.user("mira").set_policy("hold-all")
    body = {"session_id": "third", "state": said("I moved to Rome."), "started_at": "2026-03-09T10:00:00Z"}
    await call("POST", "/v1/me/sessions", json=body)
    review = (await call("GET", "/v1/me/review")).json()
    (held,) = review["held"]
    assert (await call("POST", "/v1/me/review/run:999", json={"decision": "reject"})).status_code == 404
    decided = (await call("POST", f"/v1/me/review/{held['item']}", json={"decision": "approve"})).json()
    assert decided["status"] == "applied"
    assert "Rome" in {fact["value"] for fact in (await call("GET", "/v1/me/facts")).json()["facts"]}
    assert (await call("GET", "/v1/me/costs")).json()["total"]["calls"] == 0


async def test_what_agents_found(call: ServiceClient) -> None:
    mira = call.app.user("mira")
    await mira.set_finding_policy("researcher")
    await mira.save_finding("The E4 string is brighter.", agent="researcher", topic="strings")
    (finding,) = (await mira.findings()).findings
    (listed,) = (await call("GET", "/v1/me/findings")).json()["findings"]
    assert (listed["id"], listed["status"]) == (finding.id, "current")
    path = f"/v1/me/findings/{finding.id}"
    assert len((await call("GET", path)).json()["sayings"]) == 1
    assert (await call("POST", f"{path}/drop")).json()["status"] == "dropped"
    assert (await call("GET", "/v1/me/findings")).json()["findings"] == []
    assert (await call("POST", f"{path}/approve")).json()["status"] == "current"
    assert (await call("POST", f"{path}/erase")).status_code == 422
    assert (await call("GET", path, user="noor")).status_code == 404


async def test_what_is_remembered_after_the_newest_run_was_forgotten_is_stored(call: ServiceClient) -> None:
    first = (await call("POST", "/v1/memory/remember", json={"content": "I live in Oslo."})).json()
    target = {"fact": first["id"]}
    token = (await call("POST", "/v1/me/forget/preview", json=target)).json()["confirmation"]
    assert (await call("POST", "/v1/me/forget", json={**target, "confirmation": token})).status_code == 200
    answer = await call("POST", "/v1/memory/remember", json={"content": "I like tea."})
    assert answer.status_code == 200
    session = {"session_id": "monday", "state": said("I prefer window seats."), "started_at": MONDAY}
    assert (await call("POST", "/v1/me/sessions", json=session)).json()["result"] == "done"


async def test_forgetting_needs_its_confirmation(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    target = {"session": "friday"}
    preview = (await call("POST", "/v1/me/forget/preview", json=target)).json()
    assert preview["preview"]["erased"]["sessions"] == 1
    token = preview["confirmation"]
    for wrong in (
        {"session": "monday", "confirmation": token},
        {**target, "confirmation": "x"},
        {**target, "confirmation": "9" * 11 + "." + token.partition(".")[2]},
        {"everything": True, "confirmation": token},
    ):
        assert (await call("POST", "/v1/me/forget", json=wrong)).status_code == 403
    assert (await call("POST", "/v1/me/forget", json=target)).status_code == 422
    other = await call("POST", "/v1/me/forget", json={**target, "confirmation": token}, user="noor")
    assert other.status_code == 403
    done = (await call("POST", "/v1/me/forget", json={**target, "confirmation": token})).json()
    assert done["receipt"]["done"]
    assert (await call("GET", "/v1/me/sessions/friday")).status_code == 404
    assert (await call("POST", "/v1/me/forget/preview", json={})).status_code == 400
    ahead = await call("POST", "/v1/me/forget/preview", json={"before": "2062-01-01"})
    assert (ahead.status_code, "lies in the future" in ahead.text) == (400, True)


async def test_a_session_does_not_begin_in_the_future(call: ServiceClient) -> None:
    session = {"session_id": "later", "state": said("I live in Oslo."), "started_at": "2062-01-01T00:00:00Z"}
    refused = await call("POST", "/v1/me/sessions", json=session)
    assert (refused.status_code, "lies in the future" in refused.text) == (400, True)


async def test_an_export(call: ServiceClient, two_sessions: dict[str, Any], tmp_path: Path) -> None:
    exported = (await call("GET", "/v1/me/export")).json()
    assert {fact["value"] for fact in exported["facts"]} >= {"Porto", "Oslo"}
    assert "I moved to Oslo." in {turn["text"] for turn in exported["turns"]}
    assert "Oslo" in (await call("GET", "/v1/me/export", params={"form": "markdown"})).text
    assert (await call("GET", "/v1/me/export", params={"form": "full"})).status_code == 403
    admin = {"Authorization": f"Bearer {await call.secret('mira', admin=True)}"}
    full = await call("GET", "/v1/me/export", params={"form": "full"}, headers=admin)
    (tmp_path / "mira.jsonl").write_text(full.text)
    async with afterword.open("sqlite://", settings=Settings()) as other:
        await other.import_(tmp_path / "mira.jsonl")
        assert (await other.user("mira").facts()).total == 2
    assert (await call("GET", "/v1/me/export", user="noor")).status_code == 404


async def test_an_administrator_sees_a_tenant(call: ServiceClient, two_sessions: dict[str, Any]) -> None:
    await call.app.scope("acme/user/mira").remember("I like tea.")
    await call.app.scope("acme/user/default/user/x").remember("I like tea.")
    root = {"Authorization": f"Bearer {(await call.app.keys.create(admin=True)).secret}"}
    scopes = (await call.http.get("/v1/admin/scopes", headers=root)).json()
    assert scopes["scopes"] == ["default/user/mira"]
    await call.app.user("mira").process({"no": "conversation"}, session_id="broken")
    failed = (await until(call, "/v1/admin/failures", lambda content: content["total"], headers=root))["sessions"]
    assert [session["session_id"] for session in failed] == ["broken"]
    assert (await call.http.get("/v1/admin/queue", headers=root)).json()["total"] == 0
    retried = await call.http.post("/v1/admin/retry", json={}, headers=root)
    assert retried.json() == {"queued": 1}
    nothing = await call.http.post("/v1/admin/retry", json={"session_id": "nothing"}, headers=root)
    assert nothing.status_code == 404
    entries = (await call.http.get("/v1/admin/audit", headers=root)).json()["entries"]
    assert [entry["action"] for entry in entries][:2] == ["retry", "retry"]
    assert (await call.http.get("/v1/scopes/acme/user/mira/facts", headers=root)).status_code == 404
    assert (await call.http.get("/v1/scopes/default/user/mira/facts", headers=root)).status_code == 200
    assert (await call.http.get("/v1/me/facts", headers=root)).status_code == 404
    assert (await call("GET", "/v1/admin/scopes")).status_code == 403


async def test_a_repeated_write_is_done_once(call: ServiceClient) -> None:
    headers, body = {"Idempotency-Key": "one"}, {"content": "I live in Oslo."}
    first = await call("POST", "/v1/memory/remember", json=body, headers=headers)
    again = await call("POST", "/v1/memory/remember", json=body, headers=headers)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (await call("GET", "/v1/me/runs")).json()["total"] == 1
    other = await call("POST", "/v1/memory/remember", json={"content": "I live in Rome."}, headers=headers)
    assert other.status_code == 422
    noor = await call("POST", "/v1/memory/remember", json=body, headers=headers, user="noor")
    assert noor.status_code == 200
    assert "Idempotency-Replayed" not in noor.headers
    answers = await asyncio.gather(
        *(call("POST", "/v1/memory/remember", json={"content": "I like tea."}, headers={"Idempotency-Key": "two"})
          for _ in range(8))
    )  # fmt: skip
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert (await call("GET", "/v1/me/runs")).json()["total"] == 2


async def test_the_document_is_served_offline(call: ServiceClient) -> None:
    assert (await call.http.get("/openapi.json")).status_code == 401
    document = (await call("GET", "/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))
    assert "http://" not in str(document["paths"])


async def test_problems_have_the_form_of_the_standard(call: ServiceClient) -> None:
    for answer, status in (
        (await call.http.get("/v1/me/facts"), 401),
        (await call.http.get("/nothing"), 404),
        (await call.http.put("/healthz"), 405),
        (await call("DELETE", "/v1/me/facts/5ea42acc"), 405),
        (await call("GET", "/v1/me/facts", params={"limit": 0}), 422),
        (await call("GET", "/v1/me/facts", params={"status": "gone"}), 400),
    ):
        assert answer.status_code == status
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == status
        assert answer.headers["X-Request-ID"]
    deleted = await call("DELETE", "/v1/me/facts/5ea42acc")
    assert "/withdraw ends it" in deleted.json()["detail"]
    assert deleted.headers["Allow"]
    named = await call("GET", "/healthz", headers={"X-Request-ID": "abc"})
    assert named.headers["X-Request-ID"] == "abc"
    assert isinstance(named, httpx.Response)
