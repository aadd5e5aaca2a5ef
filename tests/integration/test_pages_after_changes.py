"""What the pages show after a change, and which reason they give for what they refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

import afterword
from afterword.settings import Settings
from browsing import PageContent, Visitor, visiting
from service import said

MIRA = "/pages/default/user/mira"


@pytest.fixture
async def visitor(tmp_path: Path) -> AsyncIterator[Visitor]:
    async with afterword.open(f"sqlite:///{tmp_path}/afterword.db", settings=Settings()) as app, visiting(app) as made:
        await made.sign_in()
        yield made


async def hear(visitor: Visitor, words: str, on: str) -> str:
    """Let mira say these words in a session, and return the id of the fact that it taught."""
    before = {fact.id for fact in await facts(visitor)}
    await visitor.app.user("mira").process(said(words), session_id=on, started_at=on)
    (new,) = [fact.id for fact in await facts(visitor) if fact.id not in before]
    return new


async def facts(visitor: Visitor) -> tuple[afterword.Fact, ...]:
    return (await visitor.app.user("mira").facts(status="all")).facts


async def shown_after(visitor: Visitor, fact_id: str, action: str, **fields: str) -> str:
    """Send a form of a fact's page, and return the statement of the fact that is shown then."""
    page = await visitor.open(f"{MIRA}/facts/{fact_id}")
    answer = await visitor.send(page, f"/{action}", **fields)
    assert answer.status_code == 303, PageContent(answer.text).text
    path = httpx.URL(answer.headers["location"]).path
    return (await visitor.app.user("mira").fact(path.rpartition("/")[2])).statement


async def test_a_change_shows_the_fact_that_it_concerns(visitor: Visitor) -> None:
    graz = await hear(visitor, "I live in Graz.", "2026-03-01")
    await hear(visitor, "I moved to Oslo.", "2026-05-01")
    statement = "The user lives in Wels."
    assert await shown_after(visitor, graz, "edit", statement=statement) == statement, "Oslo holds"
    await visitor.app.user("mira").remember("The user works in Ghent.", attribute="home", value="Ghent")
    lyon = await hear(visitor, "I live in Lyon.", "2026-10-01")
    statement = (await visitor.app.user("mira").fact(lyon)).statement
    for action in ("confirm", "flag", "withdraw"):
        assert await shown_after(visitor, lyon, action) == statement


async def test_a_remembered_sentence_is_shown(visitor: Visitor) -> None:
    await visitor.app.user("mira").remember("The user works in Ghent.")
    page = await visitor.open(f"{MIRA}/memory")
    answer = await visitor.send(page, "/facts", statement="I own a canoe.")
    assert "I own a canoe." in (await visitor.open(answer.headers["location"])).text


async def test_a_second_correction_from_an_old_page_shows_its_own_words(visitor: Visitor) -> None:
    tea = await hear(visitor, "I like tea.", "2026-03-01")
    page = await visitor.open(f"{MIRA}/facts/{tea}")
    for drink in ("coffee", "juice"):
        answer = await visitor.send(page, "/edit", statement=f"The user likes {drink}.")
        assert f"The user likes {drink}." in (await visitor.open(answer.headers["location"])).text
    assert [fact.statement for fact in (await visitor.app.user("mira").facts()).facts] == ["The user likes juice."]


async def test_after_the_last_decision_no_next_one_is_announced(visitor: Visitor) -> None:
    await visitor.app.user("mira").set_policy("hold-all")
    await visitor.app.user("mira").process(said("I like tea."), session_id="tea", started_at="2026-03-01")
    page = await visitor.open(f"{MIRA}/review")
    form = next(form for form in page.forms if form.fields.get("decision") == "approve")
    decided = await visitor.open((await visitor.post(form.action, form.fields)).headers["location"])
    assert "Nothing waits" in decided.text
    assert "next" not in decided.text
    again = PageContent((refused := await visitor.post(form.action, form.fields)).text)
    assert refused.status_code == 409
    assert "is applied, not proposed or held" in again.text


async def test_a_run_that_was_undone_from_another_page_says_so(visitor: Visitor) -> None:
    await hear(visitor, "I like tea.", "2026-03-01")
    run = (await visitor.app.user("mira").runs()).runs[0].run
    page = await visitor.open(f"{MIRA}/runs/{run.id}")
    undone = PageContent((await visitor.send(page, "/undo")).text)
    refused = await visitor.send(page, "/undo")
    assert (refused.status_code, f"run {run.id} of" in refused.text) == (409, True)
    assert "is undone, not applied" in refused.text
    await visitor.send(undone, "/redo")
    assert "is applied, not undone" in (await visitor.send(undone, "/redo")).text
    visitor.http.headers["Accept-Language"] = "de"
    assert "ist schon in Kraft" in (await visitor.send(undone, "/redo")).text


async def test_a_name_is_no_longer_than_in_a_request(visitor: Visitor) -> None:
    tea = await hear(visitor, "I like tea.", "2026-03-01")
    page = await visitor.open(f"{MIRA}/facts/{tea}")
    for length, status in ((256, 400), (255, 303)):
        assert (await visitor.send(page, "/edit", about="B" * length)).status_code == status


REFUSED_FORMS = [
    ("facts", {"statement": ""}),
    ("facts", {"statement": "off the record: I dislike Bob."}),
    ("facts", {"statement": "My password is hunter2-Xk9!"}),
    ("facts", {"statement": "x" * 10_001}),
    ("facts/{fact}/edit", {"statement": ""}),
    ("facts/{fact}/edit", {"statement": "{said}"}),
    ("facts/{fact}/edit", {"statement": "My password is hunter2-Xk9!"}),
    ("facts/{fact}/edit", {"statement": "off the record: I dislike Bob."}),
    ("facts/{fact}/edit", {"about": "B" * 300}),
    ("review", {"item": "name:{fact}", "decision": "about", "about": ""}),
    ("review", {"item": "name:{fact}", "decision": "maybe"}),
    ("review", {"item": "run:{run}", "decision": "maybe"}),
    ("review", {"item": "run:{run}", "decision": "keep-both"}),
    ("review", {"item": "run:x", "decision": "approve"}),
    ("review", {"item": "run:{run}", "decision": "approve"}),
    ("review", {"item": "erase:{fact}", "decision": "approve"}),
    ("facts/{former}/withdraw", {}),
    ("facts/{gone}/withdraw", {}),
    ("policy", {"policy": "maybe"}),
    ("runs/{run}/redo", {}),
    ("runs/{run}/apply", {}),
    ("runs/{run}/reject", {}),
    ("forget", {}),
    ("forget", {"fact": "abc"}),
    ("forget", {"everything": "yes", "name": "noor"}),
]
REFUSED_ADDRESSES = ["memory?tag=" + "x" * 101, "memory?as_of=yesterday", "forget", "forget?fact=abc"]


def reason(answer: httpx.Response) -> str:
    """Return the reason that an error page gives."""
    page = PageContent(answer.text)
    assert answer.status_code in (400, 409), (answer.status_code, page.text)
    return answer.text.partition('role="alert"')[2].partition("<bdi>")[2].partition("</bdi>")[0]


async def test_every_reason_for_a_refusal_is_given_in_the_language_of_the_reader(visitor: Visitor) -> None:
    fact = await hear(visitor, "I like tea.", "2026-03-01")
    run = (await visitor.app.user("mira").runs()).runs[0].run.id
    form = (await visitor.open(f"{MIRA}/facts/{fact}")).form("/confirm")
    mira = visitor.app.user("mira")
    former, gone = [(await mira.remember(said)).facts[0].id for said in ("I own a boat.", "I own a bike.")]
    await mira.edit(former, statement="I own a canoe.")
    await mira.withdraw(gone)
    said = (await mira.fact(fact)).statement
    values = {"fact": fact, "former": former, "gone": gone, "run": str(run), "said": said}
    reasons: dict[str, list[str]] = {"en": [], "de": []}
    for language, given in reasons.items():
        visitor.http.headers["Accept-Language"] = language
        for path, fields in REFUSED_FORMS:
            filled = {name: text.format(**values) for name, text in fields.items()}
            answer = await visitor.post(f"{MIRA}/{path.format(**values)}", {"csrf": form.fields["csrf"], **filled})
            given.append(reason(answer))
        given += [reason(await visitor.http.get(f"{MIRA}/{path}")) for path in REFUSED_ADDRESSES]
    cases = [*REFUSED_FORMS, *REFUSED_ADDRESSES]
    pairs = zip(cases, *reasons.values(), strict=True)
    assert [case for case in pairs if not case[1] or not case[2] or case[1] == case[2]] == []
