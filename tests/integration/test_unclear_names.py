"""A judge that takes one name for two people: the person is asked, and every place says what is no longer told."""

from __future__ import annotations

import json

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply, shown_pairs
from afterword.facts.assertions import Kind
from commands import Commands
from saved import write_manifest

NUTS, CATS = "Nico is allergic to peanuts", "Nico is allergic to cats"


def doubtful(request: Json) -> Reply:
    """Answer as a model that finds one fact in each session, and says of two of them that they are about two people."""
    text = request["messages"][-1]["content"]
    if "<statements>" in text:
        one = {"reason": "unlike", "relation": "beside", "same_subject": False}
        return Reply(json.dumps({"findings": [{"pair": pair, **one} for pair in shown_pairs(text)]}))
    said = NUTS if NUTS in text else CATS
    kept = Candidate(
        kind=Kind.ENTITY,
        subject="Nico",
        attribute="allergy",
        value=said.removeprefix("Nico is allergic to "),
        statement=f"{said}.",
        evidence=[Citation(turn=1, quote=said)],
    )
    return facts_reply(kept)


def test_a_fact_that_becomes_unclear_is_named_by_the_run_and_by_the_review(afterword: Commands) -> None:
    days = ("monday", "2026-03-02T09:00:00Z", NUTS), ("tuesday", "2026-03-03T09:00:00Z", CATS)
    write_manifest(afterword.folder, *days)
    with ScriptedEndpoint(doubtful) as endpoint:
        model = {
            "AFTERWORD_EXTRACTOR": "model",
            "AFTERWORD_MODEL__BASE_URL": endpoint.base_url,
            "AFTERWORD_MODEL__API_KEY": "none",
            "AFTERWORD_MODEL__MODE": "json_schema",
        }
        assert "is meant" not in afterword.within(model, "run", ".", "--session", "monday")
        told = afterword.within(model, "run", ".", "--session", "tuesday")
    for statement in (NUTS, CATS):
        doubt = "told to agents with this doubt until `afterword review` says which Nico is meant"
        assert f"? {statement}. ({doubt})" in told
    assert f"which Nico is meant? {NUTS}." in afterword("review", "--user", "mira")
