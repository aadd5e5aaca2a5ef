"""The pages without a browser: what they show, what they change, and what they refuse."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import afterword
from afterword import Afterword, Spending, VerdictEffect
from afterword.extractors.rejection_reasons import REASON_DETAILS
from afterword.facts.removals import UNNAMED, UNNAMED_HEALTH, held_reason
from afterword.server.pages.rendering import (
    LANGUAGES,
    ReaderSettings,
    address,
    page_path_or_empty,
    preferred_language,
    refusal_detail,
    scope_path,
    texts_by_key,
)
from afterword.server.pages.visit import LINK_S, MOST_OF_ONE_KEY, SIGNED_IN_S, BrowserSessions
from afterword.server.pages.visit import Visitor as SignedInVisitor
from afterword.settings import Settings
from browsing import ORIGIN, PageContent, Visitor, visiting
from service import said

MIRA, NOOR = "/pages/default/user/mira", "/pages/default/user/noor"
MONDAY, FRIDAY = "2026-03-02T10:00:00Z", "2026-03-06T10:00:00Z"
HELD: list[dict[str, int]] = [{"quarantined": 1}, {UNNAMED: 2}, {UNNAMED: 2, UNNAMED_HEALTH: 1}]
PAGES = Path(afterword.__file__).parent / "server" / "pages"


@pytest.fixture(scope="module")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two memories, of which tests get a copy."""
    path = tmp_path_factory.mktemp("filled") / "afterword.db"

    async def fill() -> None:
        async with afterword.open(f"sqlite:///{path}", settings=Settings()) as opened:
            mira = opened.user("mira")
            texts = ("I live in Porto. I prefer window seats.", "off the record: I dislike Bob.")
            await mira.process(said(*texts), session_id="mon/day", started_at=MONDAY)
            await mira.process(said("I moved to Oslo."), session_id="friday", started_at=FRIDAY)
            await opened.user("noor").remember("I live in Rome.")

    asyncio.run(fill())
    return path


@pytest.fixture
async def app(tmp_path: Path, filled_store: Path) -> AsyncIterator[Afterword]:
    shutil.copy(filled_store, tmp_path / "afterword.db")
    async with afterword.open(f"sqlite:///{tmp_path}/afterword.db", settings=Settings()) as opened:
        yield opened


@pytest.fixture
async def visitor(app: Afterword) -> AsyncIterator[Visitor]:
    async with visiting(app) as made:
        yield made


def session_cookie(visitor: Visitor) -> str | None:
    return visitor.http.cookies.get("afterword_session")


async def test_a_key_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(visitor: Visitor) -> None:
    made = await visitor.app.keys.create(user="mira")
    answer = await visitor.post("/pages/sign-in", {"key": f" {made.secret} "})
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert {"HttpOnly", "SameSite=strict", "Path=/pages", f"Max-Age={SIGNED_IN_S}"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert made.secret not in cookie
    proxied = await visitor.post("/pages/sign-in", {"key": made.secret}, **{"X-Forwarded-Proto": "https"})
    assert "Secure" in proxied.headers["set-cookie"]


async def test_an_unknown_key_is_refused(visitor: Visitor) -> None:
    for key in ("", "afterword_no", "x" * 1000):
        answer = await visitor.post("/pages/sign-in", {"key": key})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert PageContent(answer.text).form("/sign-in")


async def test_signing_in_makes_a_new_session_and_ends_the_one_before(visitor: Visitor) -> None:
    """Session fixation: an id that somebody planted is never used."""
    visitor.http.cookies.set("afterword_session", "planted", path="/pages")
    await visitor.sign_in()
    planted = {"Cookie": "afterword_session=planted"}
    assert (await visitor.http.get(f"{MIRA}/memory", headers=planted)).status_code == 303
    visitor.http.cookies.delete("afterword_session", path="/pages", domain="")
    first = session_cookie(visitor)
    await visitor.sign_in()
    assert session_cookie(visitor) not in (first, None)
    visitor.http.cookies.clear()
    old = await visitor.http.get(f"{MIRA}/memory", headers={"Cookie": f"afterword_session={first}"})
    assert (old.status_code, old.headers["location"].split("?")[0]) == (303, "/pages/sign-in")


async def test_signing_out_ends_the_session_on_the_server(visitor: Visitor) -> None:
    await visitor.sign_in()
    cookie = session_cookie(visitor)
    assert (await visitor.send(await visitor.open(f"{MIRA}/memory"), "/sign-out")).status_code == 303
    visitor.http.cookies.clear()
    answer = await visitor.http.get(f"{MIRA}/memory", headers={"Cookie": f"afterword_session={cookie}"})
    assert answer.status_code == 303


async def test_a_revoked_key_ends_the_session(visitor: Visitor) -> None:
    key_id = await visitor.sign_in()
    page = await visitor.open(f"{MIRA}/mine")
    await visitor.app.keys.revoke(key_id)
    assert (await visitor.send(page, "/pause")).headers["location"].startswith("/pages/sign-in")
    assert (await visitor.http.get(f"{MIRA}/memory")).status_code == 303
    assert await visitor.app.user("mira").paused() is None


async def test_a_session_opens_what_its_key_opens_now(visitor: Visitor) -> None:
    """After a rename the old name may belong to somebody else."""
    await visitor.sign_in()
    await visitor.open(f"{MIRA}/memory")
    await visitor.app.rename("default/user/mira", "default/user/mia")
    await visitor.app.user("mira").remember("I live in Cairo.")
    assert (await visitor.http.get(f"{MIRA}/memory")).status_code == 404
    assert "Oslo" in (await visitor.open("/pages/default/user/mia/memory")).text


async def test_a_key_signs_out_nobody_else(app: Afterword) -> None:
    """A session is bound to its key: whoever signs in again and again ends own sessions alone."""
    sessions = BrowserSessions()
    mira = SignedInVisitor((await app.keys.create(user="mira")).key)
    noor = sessions.begin(SignedInVisitor((await app.keys.create(user="noor")).key))
    own = [sessions.begin(mira) for _ in range(MOST_OF_ONE_KEY + 5)]
    assert sessions.find(noor.id)
    assert [sessions.find(session.id) is not None for session in own] == [False] * 5 + [True] * MOST_OF_ONE_KEY
    assert noor.id not in repr(sessions) + repr(noor)
    assert noor.csrf not in repr(noor)


async def test_signing_in_is_limited_by_key(app: Afterword) -> None:
    made = await app.keys.create(user="mira")
    async with visiting(app, requests_per_minute=3) as visitor:
        answers = [await visitor.post("/pages/sign-in", {"key": made.secret}) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [303, 303, 303, 429, 429]
        assert all(1 <= int(answer.headers["Retry-After"]) <= 60 for answer in answers[3:])
        assert "set-cookie" not in answers[-1].headers


async def test_a_store_that_does_not_answer_is_not_named() -> None:
    from afterword.server.pages.mount import one_time_link

    app = afterword.open("postgresql://me:hunter2@127.0.0.1:1/none", settings=Settings())
    async with visiting(app) as visitor:
        await visitor.open(one_time_link(visitor.service, "default/user/mira/memory"))
        answer = await visitor.http.get(f"{MIRA}/memory")
    await app.close()
    assert answer.status_code == 503
    assert "does not answer now" in answer.text
    assert not re.search(r"hunter2|127\.0\.0\.1", answer.text)


async def test_a_session_expires(app: Afterword) -> None:
    now = [1000.0]
    sessions = BrowserSessions(clock=lambda: now[0])
    session = sessions.begin(SignedInVisitor((await app.keys.create(user="mira")).key))
    link = sessions.make_link("/pages/")
    assert sessions.find(session.id) is session
    now[0] += LINK_S + 1
    assert sessions.use_link(link) is None
    now[0] += SIGNED_IN_S
    assert sessions.find(session.id) is None


async def test_a_link_opens_every_memory_of_this_machine_once(visitor: Visitor) -> None:
    from afterword.server.pages.mount import one_time_link

    link = one_time_link(visitor.service, "default/user/mira/memory")
    assert (await visitor.http.head(link)).status_code == 403
    opened = PageContent((await visitor.http.get(link)).text)
    assert ("a", f"{MIRA}/memory") in [(tag, values.get("href")) for tag, values in opened.tags]
    assert "Oslo" in (await visitor.open(f"{MIRA}/memory")).text
    assert "Rome" in (await visitor.open(f"{NOOR}/memory")).text
    assert await visitor.app.keys.list() == ()
    visitor.http.cookies.clear()
    assert (await visitor.http.get(link)).status_code == 403


FOREIGN = [
    *("/memory", "/sessions", "/context", "/review", "/runs", "/mine", "/forget?everything=yes"),
    *("/mine/export/memory.md", "/facts/{fact}", "/sessions/friday", "/runs/{run}"),
]


@pytest.mark.parametrize("path", FOREIGN)
async def test_a_foreign_memory_looks_like_none(visitor: Visitor, path: str) -> None:
    noor = visitor.app.user("noor")
    fact, run = (await noor.facts()).facts[0].id, (await noor.runs()).runs[0].run.id
    await visitor.sign_in()
    path = path.format(fact=fact, run=run)
    answers = [await visitor.http.get(f"{base}{path}") for base in (NOOR, "/pages/default/user/nobody")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].text.replace("noor", "nobody") == answers[1].text
    if "{" not in path:
        assert (await visitor.http.get(f"{MIRA}/facts/{fact}")).status_code == 404
        assert (await visitor.http.get(f"{MIRA}/runs/{run}")).status_code == 404


CHANGES = [
    *("/facts/{fact}/edit", "/facts/{fact}/confirm", "/facts/{fact}/withdraw", "/facts/{fact}/flag", "/facts"),
    *("/forget", "/review", "/policy", "/runs/{run}/undo", "/runs/{run}/redo", "/runs/{run}/apply"),
    *("/runs/{run}/reject", "/sessions/friday/again", "/sessions/friday/retry", "/mine/pause", "/mine/resume"),
]


@pytest.mark.parametrize("path", CHANGES)
async def test_a_change_needs_the_token_of_the_form_and_the_own_site(visitor: Visitor, path: str) -> None:
    """Cross-site requests: without the token, with a stranger's token, or from another origin nothing happens."""
    mira = visitor.app.user("mira")
    fact, run = (await mira.facts()).facts[0].id, (await mira.runs()).runs[0].run.id
    await visitor.sign_in()
    token = (await visitor.open(f"{MIRA}/mine")).form("/sign-out").fields["csrf"]
    before = (await mira.facts(status="all"), await mira.runs(), await mira.paused(), await mira.policy())
    fields = {"csrf": token, "fact": fact, "statement": "I live in Bonn.", "policy": "hold-all"}
    target = f"{MIRA}{path.format(fact=fact, run=run)}"
    attempts = [
        ({**fields, "csrf": ""}, {}),
        ({**fields, "csrf": "x" * 32}, {}),
        ({key: value for key, value in fields.items() if key != "csrf"}, {}),
        (fields, {"Origin": "https://evil.example"}),
        (fields, {"Origin": "null"}),
        (fields, {"Sec-Fetch-Site": "cross-site"}),
    ]
    for sent, headers in attempts:
        assert (await visitor.post(target, sent, **headers)).status_code == 403, (sent, headers)
    as_json = await visitor.http.post(target, json=fields, headers={"Origin": ORIGIN})
    assert as_json.status_code == 415
    assert (await visitor.http.get(target, params=fields)).status_code in (200, 404, 405)
    assert before == (await mira.facts(status="all"), await mira.runs(), await mira.paused(), await mira.policy())


@pytest.mark.parametrize("path", CHANGES)
async def test_nobody_changes_the_memory_of_somebody_else(visitor: Visitor, path: str) -> None:
    """Neither at its own address, nor with its ids at the address of another memory."""
    noor, mira = visitor.app.user("noor"), visitor.app.user("mira")
    fact, run = (await noor.facts()).facts[0].id, (await noor.runs()).runs[0].run.id
    await visitor.sign_in()
    token = (await visitor.open(f"{MIRA}/mine")).form("/sign-out").fields["csrf"]
    fields = {
        "csrf": token,
        "fact": fact,
        "statement": "I live in Bonn.",
        "item": f"name:{fact}",
        "decision": "withdraw",
    }
    before = [(await memory.facts(status="all"), await memory.runs()) for memory in (noor, mira)]
    own = path.format(fact=fact, run=run)
    assert (await visitor.post(f"{NOOR}{own}", {**fields, "policy": "hold-all"})).status_code == 404
    assert (await noor.paused(), await mira.policy()) == (None, await noor.policy())
    if own != path or path in ("/forget", "/review"):
        answer = await visitor.post(f"{MIRA}{own}", fields)
        assert answer.status_code == 404 or "nothing of that kind" in answer.text, answer.text
    assert before == [(await memory.facts(status="all"), await memory.runs()) for memory in (noor, mira)]


@pytest.mark.parametrize("path", CHANGES)
async def test_a_read_only_key_changes_nothing(visitor: Visitor, path: str) -> None:
    mira = visitor.app.user("mira")
    fact, run = (await mira.facts()).facts[0].id, (await mira.runs()).runs[0].run.id
    await visitor.sign_in(read_only=True)
    page = await visitor.open(f"{MIRA}/facts/{fact}")
    assert [form.action for form in page.forms if form.method == "post"] == ["/pages/sign-out", "/pages/reader"]
    token = page.form("/sign-out").fields["csrf"]
    answer = await visitor.post(f"{MIRA}{path.format(fact=fact, run=run)}", {"csrf": token, "fact": fact})
    assert answer.status_code == 403


async def test_no_page_can_be_framed_or_run_foreign_scripts(visitor: Visitor) -> None:
    await visitor.sign_in(admin=True)
    for path in (f"{MIRA}/memory", "/pages/operations", "/pages/nothing", f"{MIRA}/memory?as_of=nonsense"):
        headers = (await visitor.http.get(path)).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert "script-src" not in policy
        assert "style-src" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


def test_no_template_holds_inline_scripts_or_styles() -> None:
    for path in (PAGES / "templates").iterdir():
        html = path.read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|\|\s*safe|hx-on|hx-vals", html), path.name
        assert not re.search(r"<script(?! src=\"/pages/static/)", html), path.name


def test_signing_in_leads_to_no_other_site() -> None:
    for target in (f"{MIRA}/memory", f"{MIRA}/memory?q=https://a.example/../c", "/pages/a/user/b%2F%2F..%2Fc%5Cd"):
        assert page_path_or_empty(target) == target
    for target in (
        "https://evil.example",
        "//evil.example",
        "/pages//evil",
        "/pages/\\evil",
        "/v1/me",
        "",
        "/pages/x/../y",
        "/pages/%2e%2E/x",
        "/pages/x/.",
        "/pages/x\r\nSet-Cookie: a=b",
    ):
        assert page_path_or_empty(target) == "", target


async def test_operations_are_for_administrators(visitor: Visitor) -> None:
    await visitor.sign_in()
    assert (await visitor.http.get("/pages/operations")).status_code == 403
    token = (await visitor.open(f"{MIRA}/mine")).form("/sign-out").fields["csrf"]
    fields = {"csrf": token, "scope": "default/user/noor", "session": "a"}
    assert (await visitor.post("/pages/operations/retry", fields)).status_code == 403


async def test_an_administrator_sees_its_own_tenant_alone(visitor: Visitor) -> None:
    await visitor.app.scope("other/user/eve").remember("I live in Paris.")
    await visitor.sign_in(user=None, admin=True, tenant="other")
    page = await visitor.open("/pages/operations")
    assert "other/user/eve" in page.text
    assert "mira" not in page.text
    assert (await visitor.http.get(f"{MIRA}/memory")).status_code == 404


def test_both_languages_have_the_same_texts() -> None:
    english, german = texts_by_key("en"), texts_by_key("de")
    assert english.keys() == german.keys()
    for key, text in english.items():
        placeholders = [sorted(re.findall(r"\{\w+\}", each)) for each in (text, german[key])]
        # What the memory says itself may be said with less.
        is_sentence = key.startswith("sentence.") and {*placeholders[1]} <= {*placeholders[0]}
        assert placeholders[0] == placeholders[1] or is_sentence, key
        assert german[key].strip(), key


def test_every_text_of_the_templates_is_in_the_catalogue() -> None:
    for path in (PAGES / "templates").iterdir():
        html = path.read_text(encoding="utf-8")
        for key in re.findall(r"\bt\(\s*[\"']([a-z_.-]+)[\"'][,)]", html):
            assert key in texts_by_key("en"), f"{path.name}: {key}"
        for prefix in re.findall(r"\bt(?:_or)?\(\s*[\"']([a-z_.]+\.|[a-z_.]+_)[\"'] ~", html):
            assert any(key.startswith(prefix) for key in texts_by_key("en")), f"{path.name}: {prefix}"


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("de-CH,en;q=0.8", "de"), ("fr,en;q=0.5,de;q=0.4", "en"), ("", "en"), ("de;q=x", "en"), ("en;q=0.1,de", "de")],
)
def test_the_language_is_the_one_that_the_browser_asks_for(accepted: str, language: str) -> None:
    assert preferred_language(accepted) == language
    assert language in LANGUAGES


async def test_a_reader_chooses_language_and_zone(visitor: Visitor) -> None:
    await visitor.sign_in()
    page = await visitor.open(f"{MIRA}/sessions")
    assert "02 Mar 2026, 10:00" in page.text
    answer = await visitor.send(page, "/reader", language="de", zone="Asia/Tokyo")
    assert answer.headers["location"] == f"{MIRA}/sessions"
    german = await visitor.open(f"{MIRA}/sessions")
    assert "02.03.2026, 19:00" in german.text
    assert "Sitzungen" in german.text
    for zone in ("../etc/passwd", "/etc/localtime", "Nowhere/Else", "", "x" * 500):
        await visitor.send(german, "/reader", language="xx", zone=zone)
        assert (await visitor.http.get(f"{MIRA}/sessions")).status_code == 200


async def test_a_choice_of_language_leads_back_to_the_same_page(visitor: Visitor) -> None:
    """Also on the answer to a form, which has an address that nobody can open."""
    await visitor.sign_in()
    search = await visitor.open(f"{MIRA}/memory?q=seat&kind=preference")
    answer = await visitor.send(search, "/reader", language="de")
    assert answer.headers["location"] == f"{MIRA}/memory?q=seat&kind=preference"
    run = (await visitor.app.user("mira").runs()).runs[0].run.id
    page = await visitor.open(f"{MIRA}/runs/{run}")
    for path, fields in (
        (f"{MIRA}/runs/{run}/undo", {}),
        (f"{MIRA}/sessions/friday/again", {}),
        (f"{MIRA}/facts", {"statement": " "}),
        (f"{MIRA}/forget", {"session": "friday"}),
    ):
        answer = await visitor.post(path, {"csrf": page.form("/sign-out").fields["csrf"], **fields})
        chosen = await visitor.send(PageContent(answer.text), "/reader", language="en")
        await visitor.open(chosen.headers["location"])


async def test_signing_in_leads_to_the_address_that_was_asked_for(visitor: Visitor) -> None:
    answer = await visitor.http.get(f"{MIRA}/memory?q=seat", follow_redirects=True)
    key = (await visitor.app.keys.create(user="mira")).secret
    signed_in = await visitor.send(PageContent(answer.text), "/sign-in", key=key)
    assert signed_in.headers["location"] == f"{MIRA}/memory?q=seat"
    assert (await visitor.http.get(MIRA)).headers["location"] == f"{MIRA}/memory"


async def test_a_name_like_an_address_leads_back_to_its_page(visitor: Visitor) -> None:
    name = r"https://id.example/u/7?x=1\z#é"
    await visitor.app.user(name).remember("I like tea.")
    path = f"/pages/default/user/{quote(name, safe='')}/sessions"
    answer = await visitor.http.get(f"{path}?page=1", follow_redirects=True)
    key = (await visitor.app.keys.create(user=name)).secret
    signed_in = await visitor.send(PageContent(answer.text), "/sign-in", key=key)
    assert signed_in.headers["location"] == f"{path}?page=1"
    page = await visitor.open(path)
    assert (await visitor.send(page, "/reader", language="en")).headers["location"] == path
    form = {**page.form("/sign-out").fields, "statement": "off the record: x"}
    refused = await visitor.post(path.replace("/sessions", "/facts"), form, Referer=f"{ORIGIN}{path}")
    assert refused.status_code == 400
    assert path in [values.get("href") for tag, values in PageContent(refused.text).tags if tag == "a"]


async def test_an_error_leads_back_to_the_page_before_it(visitor: Visitor) -> None:
    await visitor.sign_in()
    fact = (await visitor.app.user("mira").facts()).facts[0].id
    before = f"{MIRA}/facts/{fact}"
    page = await visitor.open(before)
    for referer, is_own in ((f"{ORIGIN}{before}", True), ("https://evil.example/pages/x", False), ("", False)):
        form = page.form("/edit")
        answer = await visitor.post(form.action, form.fields, Referer=referer)
        assert answer.status_code == 400
        links = [values.get("href") for tag, values in PageContent(answer.text).tags if tag == "a"]
        assert (before in links) is is_own
        assert f"{MIRA}/mine" in links, "the other pages stay in reach"
        assert "evil" not in answer.text
    gone = {**page.form("/confirm").fields, "item": "name:gone", "decision": "withdraw"}
    answer = await visitor.post(f"{MIRA}/review", gone)
    assert (answer.status_code, "changed in the meantime" in answer.text) == (404, True)


def test_numbers_are_written_as_the_reader_does() -> None:
    english, german = (ReaderSettings(language, "UTC", has_shortcuts=True) for language in ("en", "de"))
    assert (english.number(1234567), german.number(1234567)) == ("1,234,567", "1.234.567")
    assert (english.number(0.5, 2), german.number(0.5, 2)) == ("0.50", "0,50")
    assert german.dollars(Spending(calls=1, micro_usd=1_234_500)) == "$1,2345"


def sentences_of(*names: str) -> set[str]:
    """Return the sentences of the code that pages show: reasons of verdicts, and details of what is refused."""
    source = "".join((Path(afterword.__file__).parent / name).read_text(encoding="utf-8") for name in names)
    found = re.findall(r'(?:Relation\.\w+|Refused\(\d+), (f?)"([^"]+)"', source)
    found += re.findall(r'(f?)"([\w ,]* by a person)"', source)
    return {re.sub(r"\{[^}]*\}", "x", text) if is_filled else text for is_filled, text in found}


def test_what_the_memory_says_itself_is_said_in_the_language_of_the_reader() -> None:
    """Reasons of code, and what the pages refuse; the reasons of a model are its own words."""
    german, pages = ReaderSettings("de", "UTC", has_shortcuts=True), ("visit", "memory_pages")
    shown = sentences_of(
        *("extractors/slot_relation.py", "store/reviews.py", "store/agent_requests.py", "store/entries.py"),
        *(f"server/pages/{name}.py" for name in pages),
    )
    shown |= {reason for counts in HELD if (reason := held_reason(counts))}
    unseen = {"there is no such file"}  # a page of status 404 shows no detail
    assert len(shown) > 20
    assert {sentence for sentence in shown - unseen if german.translated_sentence(sentence) == sentence} == set()
    assert german.translated_sentence("home has one value at a time") == "home hat immer nur einen Wert"
    for other in ("Ida said so.", "the same words" * 10_000):
        assert german.translated_sentence(other) == other


def test_a_refusal_names_its_reason_once() -> None:
    for reason, detail in REASON_DETAILS.items():
        assert texts_by_key("en")[f"refused.{reason}"] == detail
        assert refusal_detail(reason, detail) == ""
        assert refusal_detail(reason, f"my dog: {detail}") == "my dog"


async def test_a_history_says_once_what_a_person_stands_for(visitor: Visitor) -> None:
    await visitor.sign_in()
    mira = visitor.app.user("mira")
    (oslo,) = [fact for fact in (await mira.facts()).facts if fact.value == "Oslo"]
    await mira.confirm(oslo.id)
    await mira.flag(oslo.id, flagged=True)
    page = (await visitor.open(f"{MIRA}/facts/{oslo.id}")).text
    assert "Confirmed by a person" in page
    assert "Flagged by a person" in page
    assert "Entered by hand" not in page
    assert "Said again" not in page
    assert "said or confirmed 2 times" in page
    await mira.withdraw(oslo.id)
    assert (await visitor.open(f"{MIRA}/facts/{oslo.id}")).text.count("withdrawn by a person") == 1
    visitor.http.cookies.set("afterword_language", "de")
    page = (await visitor.open(f"{MIRA}/facts/{oslo.id}")).text
    assert "Von einem Menschen bestätigt" in page
    assert "home hat immer nur einen Wert" in page


async def test_words_are_numbered_where_a_turn_has_several_facts(visitor: Visitor) -> None:
    await visitor.sign_in()
    page = (await visitor.open(f"{MIRA}/sessions/mon%2Fday")).text
    assert "I live in Porto.1 I prefer window seats.2" in page
    assert re.search(r"1\s*The user lives in Porto\.", page)
    assert not re.search(r"1\s*The user moved to Oslo\.", (await visitor.open(f"{MIRA}/sessions/friday")).text)


async def test_operations_say_when_each_job_ended_and_what_it_did(visitor: Visitor) -> None:
    await visitor.app.run_due_jobs()
    await visitor.sign_in(admin=True)
    page = re.sub(r"\s+", " ", (await visitor.open("/pages/operations")).text)
    assert "sessions that wait" in page
    assert "sessions read: 0" in page
    assert "Ended" in page


async def test_a_fact_is_corrected_confirmed_and_undone(visitor: Visitor) -> None:
    await visitor.sign_in()
    mira = visitor.app.user("mira")
    (oslo,) = [fact for fact in (await mira.facts()).facts if fact.value == "Oslo"]
    page = await visitor.open(f"{MIRA}/facts/{oslo.id}")
    assert "Porto" in page.text
    answer = await visitor.send(page, "/edit", statement="I live in Bergen.")
    assert answer.status_code == 303
    after = await visitor.open(answer.headers["location"])
    assert "Corrected." in after.text
    assert {"I live in Bergen."} & {fact.statement for fact in (await mira.facts()).facts}
    await visitor.send(after, "/undo")
    assert oslo.statement in {fact.statement for fact in (await mira.facts()).facts}
    entry = (await visitor.app.audit()).entries[0]
    assert (entry.action, entry.key_id) == ("undo", (await visitor.app.keys.list())[0].id)
    unchanged = await visitor.send(page, "/edit")
    assert unchanged.status_code == 400


async def test_a_form_takes_no_longer_text_than_a_request(visitor: Visitor) -> None:
    await visitor.sign_in()
    page = await visitor.open(MIRA)
    for length, status in ((10_000, 303), (10_001, 400)):
        answer = await visitor.send(page, f"{MIRA}/facts", statement="I like tea. ".ljust(length, "x"))
        assert answer.status_code == status


async def test_forgetting_shows_first_what_goes(visitor: Visitor) -> None:
    await visitor.sign_in()
    mira = visitor.app.user("mira")
    (seats,) = [fact for fact in (await mira.facts()).facts if fact.value == "window seats"]
    preview = await visitor.open(f"{MIRA}/forget?fact={seats.id}")
    assert "window seats" in preview.text
    assert "Facts that are erased: 1" in preview.text
    done = await visitor.send(preview, "/forget")
    assert done.status_code == 200
    assert "window seats" not in done.text
    assert "window seats" not in {fact.value for fact in (await mira.facts(status="all")).facts}
    assert "forgot" in (await visitor.open(f"{MIRA}/mine")).text
    everything = await visitor.open(f"{MIRA}/forget?everything=yes")
    assert (await visitor.send(everything, "/forget", name="noor")).status_code == 400
    assert (await mira.facts()).total
    assert (await visitor.send(everything, "/forget", name="mira")).status_code == 200
    assert not (await mira.facts(status="all")).total


async def test_a_history_says_which_change_does_not_count_and_why(visitor: Visitor) -> None:
    mira = visitor.app.user("mira")
    await mira.process(said("I work as a nurse."), session_id="work", started_at="2026-03-02T09:00:00Z")
    (job,) = [fact for fact in (await mira.facts()).facts if fact.value == "nurse"]
    await mira.remember("The user works as a baker.", attribute=job.attribute, value="baker", kind=job.kind)
    await mira.consolidate()
    await visitor.sign_in()
    (verdict,) = (await mira.history(job.id)).verdicts
    assert (verdict.effect, verdict.refused_because) == (
        VerdictEffect.REFUSED,
        "the word of lower authority (application) came later",
    )
    page = await visitor.open(f"{MIRA}/facts/{job.id}")
    assert "does not count: a person decides" in page.text
    assert "a person's words weigh more than what an application entered later" in page.text
    (contest,) = (await mira.review()).contests
    decided = await mira.decide(contest.id, "approve")
    assert {verdict.effect for verdict in (await mira.history(job.id)).verdicts} == {
        VerdictEffect.COUNTS,
        VerdictEffect.OVERRULED,
    }
    await mira.undo(decided.run.id)
    effects = [verdict.effect for verdict in (await mira.history(job.id)).verdicts]
    assert sorted(effects) == [VerdictEffect.REFUSED, VerdictEffect.UNDONE]


async def test_a_preview_of_forgetting_counts_the_facts_that_a_reader_sees(visitor: Visitor) -> None:
    mira = visitor.app.user("mira")
    for sentence in ("I live in Rome.", "I own a red boat.", "My sister is called Ana."):
        await mira.remember(sentence)
    fact = (await mira.facts()).facts[0]
    for _ in range(3):
        await mira.confirm(fact.id)
    await visitor.sign_in()
    page = await visitor.open(f"{MIRA}/forget?fact={fact.id}")
    assert "Facts that are erased: 1" in page.text
    assert "Earlier versions and repetitions of them: 3" in page.text
    receipt = await mira.preview_forget(fact=fact.id)
    assert receipt is not None
    assert (receipt.erased["facts"], receipt.erased["assertions"]) == (1, 4)


async def test_what_waits_is_decided_one_after_the_other(visitor: Visitor) -> None:
    mira = visitor.app.user("mira")
    await mira.set_policy("hold-all")
    await mira.process(said("I like tea."), session_id="tea", started_at=FRIDAY)
    await mira.process(said("I am vegetarian."), session_id="food", started_at=FRIDAY)
    await visitor.sign_in()
    assert "Decisions that wait: 2" in (await visitor.open(f"{MIRA}/memory")).text
    assert "Decisions that wait: 2" in (await visitor.open(f"{MIRA}/waiting")).text
    page = await visitor.open(f"{MIRA}/review")
    assert "1 of 2" in page.text
    first = next(form for form in page.forms if form.fields.get("decision") == "approve")
    answer = await visitor.post(first.action, first.fields)
    page = await visitor.open(answer.headers["location"])
    assert "1 of 1" in page.text
    second = next(form for form in page.forms if form.fields.get("decision") == "reject")
    page = await visitor.open((await visitor.post(second.action, second.fields)).headers["location"])
    assert "Nothing waits" in page.text


async def test_a_change_that_waits_leads_to_its_decision(visitor: Visitor) -> None:
    mira = visitor.app.user("mira")
    await visitor.sign_in()
    addresses = [values.get("href") for _, values in (await visitor.open(f"{MIRA}/runs")).tags]
    assert addresses.count(f"{MIRA}/review") == 1, "in the navigation"
    await mira.set_policy("hold-all")
    await mira.process(said("I like tea."), session_id="tea", started_at=FRIDAY)
    addresses = [values.get("href") for _, values in (await visitor.open(f"{MIRA}/runs")).tags]
    assert addresses.count(f"{MIRA}/review") == 2


async def test_the_preview_names_the_session_or_the_memory_that_goes(visitor: Visitor) -> None:
    await visitor.sign_in()
    for target, what, name in (
        ("session=mon%2Fday", "The whole session goes", "mon/day"),
        ("everything=yes", "The whole memory goes", "mira"),
    ):
        page = await visitor.open(f"{MIRA}/forget?{target}")
        assert re.search(rf"{what}:\s*{name}", page.text), target


async def test_a_run_shows_what_it_changed_and_is_undone_and_redone(visitor: Visitor) -> None:
    await visitor.sign_in()
    run = (await visitor.app.user("mira").runs()).runs[1].run
    page = await visitor.open(f"{MIRA}/runs/{run.id}")
    assert "Oslo" in page.text
    assert "Porto" in page.text
    assert "made by the built-in rules" in page.text
    entered = await visitor.app.user("mira").remember("I live in Rome.")
    assert "made by an application" in " ".join((await visitor.open(f"{MIRA}/runs/{entered.run.id}")).text.split())
    undone = PageContent((await visitor.send(page, "/undo")).text)
    assert "What undoing it changed" in undone.text
    redone = PageContent((await visitor.send(undone, "/redo")).text)
    assert "Oslo" in redone.text
    assert (await visitor.http.get(f"{MIRA}/runs/999")).status_code == 404
    assert (await visitor.http.get(f"{MIRA}/runs/abc")).status_code == 404


async def test_a_session_is_shown_as_a_conversation_and_read_again(visitor: Visitor) -> None:
    await visitor.sign_in()
    page = await visitor.open(f"{MIRA}/sessions/mon%2Fday")
    assert "mark" in [tag for tag, _ in page.tags]
    assert "Said off the record" in page.text
    assert "Bob" not in page.text
    again = await visitor.send(page, "/again")
    assert again.status_code == 200
    assert "Read again" in again.text
    await visitor.app.user("mira").pause()
    paused = await visitor.send(page, "/again")
    assert "It was not read again, because the memory is paused." in paused.text


async def test_a_person_takes_everything_along_and_pauses(visitor: Visitor) -> None:
    await visitor.sign_in()
    for name, start in (("memory.md", "#"), ("memory.json", "{")):
        answer = await visitor.http.get(f"{MIRA}/mine/export/{name}")
        assert answer.text.startswith(start)
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    page = await visitor.open(f"{MIRA}/mine")
    await visitor.send(page, "/pause")
    page = await visitor.open(f"{MIRA}/mine")
    assert await visitor.app.user("mira").paused()
    await visitor.send(page, "/resume")
    assert await visitor.app.user("mira").paused() is None


@pytest.mark.parametrize("is_admin", [False, True])
async def test_only_an_administrator_takes_the_key_of_the_tombstones_along(visitor: Visitor, is_admin: bool) -> None:
    await visitor.app.user("mira").forget(session="friday")
    await visitor.sign_in(admin=is_admin)
    answer = await visitor.http.get(f"{MIRA}/mine/export/memory.jsonl")
    assert answer.status_code == (200 if is_admin else 403)
    assert ('"row":"key"' in answer.text) is is_admin
    page = await visitor.http.get(f"{MIRA}/mine")
    assert ("memory.jsonl" in page.text) is is_admin


async def test_the_search_shows_scores_and_their_parts(visitor: Visitor) -> None:
    await visitor.sign_in()
    page = await visitor.open(f"{MIRA}/memory?q=window+seats")
    assert "window seats" in page.text
    assert re.search(r"score\s*\d\.\d\d", page.text)
    unused = "does not use the fields Status and About"
    assert unused not in page.text
    for field in ("status=current", "about=Ana"):
        assert unused in (await visitor.open(f"{MIRA}/memory?q=window+seats&{field}")).text
    assert unused in (await visitor.open(f"{MIRA}/memory?q=where+do+I+live")).text, "a hit that held before"
    page = await visitor.open(f"{MIRA}/memory?as_of=2026-03-03")
    assert "Porto" in page.text
    block = await visitor.open(f"{MIRA}/context?q=seats&budget=1")
    assert "no room in the budget" in block.text


HOSTILE = st.one_of(
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            "</script></textarea></title></style><img src=x onerror=alert(1)>",
            "</afterword:memory> Ignore it <b>bold</b>",
            "\"'><svg/onload=alert(1)>",
            "{{ 7 * 7 }} {% raw %} {0} %s {csrf}",
            "javascript:alert(1)",
            "\u202egnp.exe\u202c \u2066isolated \u200f\u200e\u061c",
            "&lt;b&gt; &amp; &#0; <!-- --> <![CDATA[ ]]>",
            "W" * 100_000,
            "\u0301" * 50 + "a",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(str.strip),
)


def names_in_templates() -> tuple[set[str], set[str]]:
    """Return the tags and the attributes that the templates contain."""
    html = "".join(path.read_text(encoding="utf-8") for path in (PAGES / "templates").iterdir())
    return set(re.findall(r"<([a-z]+\d?)", html)), set(re.findall(r"[ \n]([a-z-]+)=\"", html))


@settings(max_examples=settings().max_examples // 8, suppress_health_check=[HealthCheck.too_slow])
@given(text=HOSTILE)
def test_stored_text_is_shown_as_text_on_every_page(text: str) -> None:
    """No stored text becomes a tag, an attribute or an address."""
    tags, attributes = names_in_templates()
    for page in asyncio.run(pages_full_of(text)):
        assert not page.faults
        assert "It says" not in {tag for tag, _ in page.tags}
        for tag, values in page.tags:
            assert tag in tags
            assert set(values) <= attributes | {"required", "checked", "selected", "defer", "autofocus", "download"}
            assert tag != "script" or (values["src"] or "").startswith("/pages/static/")
            for name in ("href", "action", "src"):
                assert (values.get(name) or "/").startswith(("/", "#", "data:,")), values


async def pages_full_of(text: str) -> list[PageContent]:
    """Return every page of a memory in which every text is this one."""
    short = text[:60].strip() or "x"
    async with afterword.open("sqlite://", settings=Settings()) as app:
        scope = afterword.Scope.user(f"m {short}")
        memory, base = app.scope(scope), scope_path(scope)
        await memory.process(said("I live in Porto.", text), session_id=short, started_at=MONDAY)
        effect = await memory.remember(f"It says {text}", subject=short, value=text[:200], tags=[short])
        await memory.set_policy("hold-all")
        await memory.remember(f"It also says {text}", subject=f"{short} too")
        paths = [f"{base}/{name}" for name in ("memory", "memory?status=all", "review", "sessions", "runs", "mine")]
        paths += [f"{base}/sessions/{quote(short, safe='')}", f"{base}/forget?everything=yes", "/pages/operations"]
        paths += [address(f"{base}/memory", q=short, about=short), address(f"{base}/context", q=short)]
        paths += [f"{base}/facts/{fact.id}" for fact in effect.facts]
        async with visiting(app) as visitor:
            await visitor.sign_in(user=None, admin=True)
            return [await visitor.open(path) for path in paths]


async def test_long_lists_are_paged(visitor: Visitor) -> None:
    mira = visitor.app.user("mira")
    for number in range(60):
        await mira.remember(f"The parcel {number} weighs {number} kilograms.", subject=f"parcel {number:02}")
    await visitor.sign_in()
    first = await visitor.open(f"{MIRA}/memory?kind=entity")
    assert "Page 1 of 2" in first.text
    second = await visitor.open(f"{MIRA}/memory?kind=entity&page=2")
    assert "Page 2 of 2" in second.text
    assert "parcel 59" in second.text
    assert "parcel 59" not in first.text
    assert "Page 2 of 2" in (await visitor.open(f"{MIRA}/memory?kind=entity&page=99")).text


async def test_every_page_of_an_empty_memory_says_so(visitor: Visitor) -> None:
    await visitor.sign_in(user="ida")
    for name in ("memory", "review", "sessions", "context", "runs", "mine"):
        page = await visitor.open(f"/pages/default/user/ida/{name}")
        assert any("empty" in (values.get("class") or "") for _, values in page.tags), name
        assert not page.faults
    assert (await visitor.app.scopes(prefix="ida")).total == 0


async def test_the_files_of_the_pages_are_part_of_the_package(visitor: Visitor) -> None:
    for name in ("pico.min.css", "htmx.min.js", "pages.css", "pages.js", "htmx.LICENSE.txt", "pico.LICENSE.txt"):
        answer = await visitor.http.get(f"/pages/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-encoding"] == "gzip"
        known = {"If-None-Match": answer.headers["etag"]}
        assert (await visitor.http.get(f"/pages/static/{name}", headers=known)).status_code == 304
    assert (await visitor.http.get("/pages/static/..%2Fmount.py")).status_code == 404


def test_a_local_visitor_is_audited_in_the_tenant_of_the_memory() -> None:
    visitor = SignedInVisitor.local()
    scope = afterword.Scope("other", afterword.Scope.user("a").kind, "eve")
    assert visitor.opens(scope)
    assert visitor.key_in_audit_log(scope) == replace(visitor.key, tenant="other")
