"""The grammar: what a plain clause says, asks for or plans, and what it withdraws, denies or says is over. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from afterword.extractors.rules import phrases
from afterword.extractors.rules import vocabulary as words
from afterword.extractors.rules.phrases import Clause
from afterword.extractors.rules.vocabulary import named_slot, slug
from afterword.facts.assertions import Cue, Kind, SpeechAct

_E, _P, _D = Kind.ENTITY, Kind.PREFERENCE, Kind.DECISION
_FAMILY = f"{words.RELATIONS}|{words.PETS}"
_NOT = r"(?:don't|do not|never|can't|cannot|hardly ever|rarely)"
_DISLIKE = r"(?:hate|dislike|can't stand|cannot stand|can't bear|don't like|do not like|am not a (?:big )?fan of)"
_LANGUAGES = rf"(?:{words.LANGUAGES})(?:(?:, | and )(?:{words.LANGUAGES}))*"
_FOR_GOOD = r"(?:from now on|in (?:the )?future|as a rule|at all times|always)"
_OCCASION = re.compile(r"(?i)(?P<main>.+?) (?:for|on|in|at|during|while|after|before|with) (?P<occasion>.+)")
_PURPOSE = re.compile(r"(?i)(?P<main>.+?) (?:for|as) (?P<occasion>(?:the|our|my|all) .+|\w+)")
_OTHERS_ATTRIBUTES = frozenset("home country employer job origin age allergy condition diet language".split())
_DECIDED = re.compile(
    r"(?i)(?:have )?(?:(?:decided|agreed|opted|chosen) (?:(?P<against>not to |against )|to )(?P<act>.+)|(?:(?:decided|"
    r"agreed|settled|opted) (?:on|for)|chose|chosen|(?:will )?go with|am going with) (?P<thing>.+?)(?: over .+)?)"
)
_SWITCHED = re.compile(r"(?i)(?:have )?(?:switched|migrated) (?:from (?P<old>.+?) )?to (?P<new>.+)")
_REQUEST = re.compile(
    rf"(?i)(?:(?P<first>{_FOR_GOOD}),? )?(?:please )?(?:I(?: want|'d like| would like) you to )?(?:please )?"
    rf"(?:(?P<mark>always|never|don't ever|don't|do not|stop) )?(?P<verb>{words.INSTRUCTION}|\w+ing) (?P<order>.+?)"
    rf"(?:,? (?:please,? )?(?P<last>{_FOR_GOOD}))?"
)
_STANDING = re.compile(r"(?i)(?:your |my |all )?(?:answers|replies|responses|summaries|messages|explanations)\b")
_ASK = r"(?:(?:can|could|will) you (?:please )?|(?:I|we)(?:'d| would)? (?:like|want) you to )?(?:please )?(?:just )?"
_SHARED = r"I(?:'ve| have)? (?:just )?(?:told|said|mentioned|wrote|shared)(?: to)?(?: you)?"
_TOPIC = re.compile(
    rf"(?i){_ASK}(?:forget|delete|erase) (?:(?:everything |all )?(?:what|that)? ?{_SHARED} about (?P<about>[\w' -]+)|"
    rf"(?:that|the|this|my|our) (?P<topic>[\w' -]+?) (?:thing|story|business|{_SHARED})(?: {_SHARED})?)"
)
_OWN = r"(?:I|I'm|I've|we|we're|we've|my|our)\b.+"
_FORGET = re.compile(
    rf"(?i){_ASK}(?:(?:forget|(?:don't|do not) remember) (?P<own>{_OWN})|(?:forget|erase|delete|stop remembering|"
    r"(?:don't|do not|never) (?:remember|store|save|keep|note|record))(?: the fact)? that (?P<claim>.+))"
)
_DENIED = re.compile(
    r"(?i)(?:(?:that's wrong, )?it(?:(?:'s| is) (?:not (?:true|the case)|untrue|false|wrong)| isn't true),? that|I"
    rf"(?: have|'ve)? never (?:said|told you)(?: that)?|I (?:didn't|did not) say(?: that)?) (?P<claim>{_OWN})"
)
_ENDED = re.compile(
    r"(?i)(?P<head>.{1,40}?)(?: (?:no longer|no more) (?P<over>.+)| not (?P<not>.+?),? any ?(?:more|longer)|"
    r" (?:don't|do not) (?P<dont>.+?),? any ?(?:more|longer))"
)
_STOPPED = re.compile(
    r"(?i)(?P<head>I|we)(?:'ve| have)?(?: just)? (?:stopped|quit|given up) (?:(?P<gerund>\w+ing)(?P<others> .+)?|"
    r"my job (?P<job>at .+))"
)
_NOT_SO = re.compile(
    r"(?i)(?P<head>I|we)(?:(?P<be>'m| am|'re| are) not| don't| do not) (?P<claim>(?:allergic to|live in|"
    r"work (?:at|for)|vegan|vegetarian|an? (?!fan|big fan))\b.*)|my name (?:is not|isn't) (?P<name>.+)|"
    r"don't (?P<called>call me .+)"
)


class ClauseClaim(NamedTuple):
    """What a clause says about its subject, which is `{who}` in `statement`, or about `about`: a slot and its value."""

    kind: Kind
    attribute: str
    value: str
    statement: str
    act: SpeechAct = SpeechAct.STATE
    cue: Cue | None = None
    limited_to: str | None = None
    about: str | None = None
    is_plan: bool = False


# What the words of a group must be, by its name.
_CHECKS: dict[str, Callable[[str], bool]] = {
    "place": phrases.is_proper_name,
    "person": phrases.is_person_name,
    "thing": phrases.is_thing,
    "kind": phrases.is_own_thing,
    "action": lambda phrase: phrases.is_thing(phrase) and phrase.split()[0].lower() not in words.VAGUE_VERBS,
    "each": lambda phrase: all(phrases.is_allergen(part) for part in phrases.listed(phrase)),
    "named": lambda phrase: phrases.is_thing(phrase) and (phrase != phrase.lower() or named_slot(phrase) is not None),
}

# fmt: off
_AFTER_I_OR_WE: tuple[tuple[str, Kind, str], ...] = (
    (r"am called (?P<person>.+)", _E, "name"),
    (r"live in (?:an? (?:\w+ ){0,2}(?:flat|house|village|suburb) (?:in|of) )?(?P<place>.+)", _E, "home"),
    (r"(?:am (?:based|living|at home) in|(?:have )?moved (?:back )?to) (?P<place>.+)", _E, "home"),
    (r"(?:am moving|move|will move|am going to move) to (?P<place>.+)", _E, "home?"),
    (r"(?:am from|was born in|grew up in) (?P<place>.+)", _E, "origin"),
    (r"(?:(?:work|am working) (?:at|for)|(?:have )?started (?:working )?at) (?P<place>.+)", _E, "employer"),
    (r"(?:will work|will start|start|am starting) at (?P<place>.+)", _E, "employer?"),
    (rf"(?:work as|am)(?: an?)? (?P<v>{words.JOBS})(?: by trade)?(?: (?:at|for) (?P<place>.+))?", _E, "job"),
    (rf"am (?P<v>{words.NUMBERS})(?: years old)?", _E, "age"),
    (rf"have (?P<v>{words.CONDITIONS})", _E, "condition"),
    (rf"have (?P<v>(?:no|{words.NUMBERS}) (?P<noun>(?:{_FAMILY}|sibling)s|children))", _E, "number_of_*"),
    (rf"(?:am (?:an? )?|have been |eat (?:only )?|follow an? )(?P<v>{words.DIETS})(?: diet| food)?", _P, "diet"),
    (r"(?:am (?:very |severely |badly )?allergic|have an allergy) to (?P<each>.+)", _E, "allergy"),
    (r"have an? (?:severe |bad )?(?P<each>.+) allergy", _E, "allergy"),
    (r"am (?P<v>lactose|gluten|fructose)[- ]intolerant", _E, "intolerance"),
    (r"(?:like|love|enjoy|adore|am an? (?:big )?fan of|am into) (?P<kind>.+)", _P, "*"),
    (rf"{_DISLIKE} (?P<kind>.+)", _P, "not *"),
    (r"prefer (?P<thing>.+?)(?: to (?P<kind>.+))?", _P, "preferred_*"),
    (r"(?:would rather|(?:would )?prefer) not (?:to )?(?P<action>.+)", _P, "not *"),
    (r"(?:would (?:rather|prefer to)|prefer to) (?P<action>.+)", _P, "preferred_*"),
    (rf"speak (?:fluent )?(?P<each>{_LANGUAGES})", _E, "language"),
    (r"(?:always |usually )(?:take|book|choose) (?P<v>(?:the |an? )?(?:window|aisle)(?: seats?)?)", _P, "seat"),
    (r"(?:only |mostly |always )?use (?P<thing>(?!the ).+)", _E, "uses_*"),
    (rf"(?:{_NOT} |always |usually |only |mostly )(?P<verb>{words.HABITS})(?: (?P<thing>.+))?", _P, "not *"),
    (rf"(?P<verb>{words.HABITS})(?: (?P<thing>[\w -]+?))?? {words.FREQUENCY}(?: (?:before|after) \w+)?", _P, "not *"),
    (r"(?:(?:eat|drink|play|drive|own|ride|wear) (?P<thing>.+)|smoke|paint|swim|cook|bake|garden|knit)", _P, "not *"),
    (r"am married to (?P<person>.+)", _E, "spouse"),
    (rf"have an? (?P<noun>{_FAMILY}) (?:called|named) (?P<person>.+)", _E, "relation"),
    (r"(?:plan|am planning) to (?P<action>.+)", _D, "plan?"),
)
_WHOLE_SENTENCES: tuple[tuple[str, Kind, str], ...] = (
    (r"my name is (?P<person>.+)", _E, "name"),
    (r"my home is in (?P<place>.+)", _E, "home"),
    (r"my (?:new )?employer is (?P<place>.+)", _E, "employer"),
    (rf"my job is (?P<v>{words.JOBS})", _E, "job"),
    (r"(?:please )?call me (?P<person>.+)", _P, "called"),
    (r"my (?P<noun>favou?rite (?!part|exercise)[\w-]+) is (?P<thing>.+)", _P, "*"),
    (rf"my (?:new )?(?P<noun>{words.PERSONS}) is (?P<person>.+)", _E, "*"),
    (rf"my (?:new )?(?P<noun>{words.OWNED}) is (?:on (?=\d))?(?P<named>.+|an? .+|\d.*)", _E, "*"),
)
# fmt: on
_OF_SUBJECT, _OF_SENTENCE = (
    tuple((re.compile(pattern, re.IGNORECASE), kind, template) for pattern, kind, template in table)
    for table in (_AFTER_I_OR_WE, _WHOLE_SENTENCES)
)


def read_clause(clause: Clause) -> list[ClauseClaim]:
    """Return what a clause says if the grammar understands all of it. Of others than the speaker, plain facts only."""
    predicate = re.sub(r"(?i)^(?:my|our) ", "my ", clause.predicate)
    name = predicate.removeprefix("am ")
    if clause.is_greeted and clause.has_subject and phrases.is_person_name(name):
        return [ClauseClaim(_E, "name", name, f"{{who}}'s name is {name}")]
    if row := _matching_row(predicate, has_subject=clause.has_subject):
        has_changed = re.match(r"(?i)(?:have )?(?:moved|started)\b|my new\b", predicate)
        cue = clause.cue or (Cue.CHANGE if has_changed else None)
        claims = [claim._replace(cue=cue) for claim in _row_claims(predicate, *row)]
        return [claim for claim in claims if not clause.who or claim.attribute in _OTHERS_ATTRIBUTES]
    if not clause.has_subject:
        return _read_request(predicate)
    return [] if clause.who else [*_read_switch(predicate), *_read_decision(predicate)]


def _matching_row(predicate: str, *, has_subject: bool) -> tuple[dict[str, str], Kind, str] | None:
    """Return the named groups, the kind and the template of the first row that understands all of a predicate."""
    for pattern, kind, template in _OF_SUBJECT if has_subject else _OF_SENTENCE:
        match = pattern.fullmatch(predicate)
        groups = {name: text for name, text in match.groupdict().items() if text} if match else {}
        if match and all(_CHECKS[name](text) for name, text in groups.items() if name in _CHECKS):
            return groups, kind, template
    return None


def _row_claims(predicate: str, groups: dict[str, str], kind: Kind, template: str) -> Iterator[ClauseClaim]:
    """Yield the claims of a row. In `template` a star is the head noun, "not" keeps the verb, "?" marks a plan."""
    is_plan, template = template.endswith("?"), template.removesuffix("?")
    value = next((groups[name] for name in ("v", *_CHECKS) if name in groups), predicate)
    statement = _statement(predicate, groups, template, value)
    limited = _OCCASION.fullmatch(value) if template in ("preferred_*", "uses_*") else None
    main, limited_to = limited.group("main", "occasion") if limited else (value, None)
    head = re.sub(r"^the ", "", main)
    if template == "preferred_*" and value.startswith("the ") and named_slot(head) is None:
        return
    if template == "job" and "place" in groups:
        yield ClauseClaim(_E, "employer", groups["place"], f"{{who}} works at {groups['place']}")
    attribute, about = _attribute(groups, template, value, head), value if template == "relation" else None
    value = {"not *": predicate.removeprefix("am "), "relation": groups.get("noun", "").lower()}.get(template, value)
    for part in phrases.listed(value) if "each" in groups else [value]:
        sentence = statement.replace(value, part)
        yield ClauseClaim(kind, attribute, part, sentence, limited_to=limited_to, about=about, is_plan=is_plan)


def _statement(predicate: str, groups: dict[str, str], template: str, value: str) -> str:
    if template == "relation":
        return f"{value} is {{who}}'s {groups['noun'].lower()}"
    if template == "called":
        return f"{{who}} wants to be called {value}"
    if template == "job" and "place" in groups:
        return f"{{who}} is a {value}"
    is_owned = predicate.startswith("my ")
    return "{who}'s" + predicate[2:] if is_owned else "{who} " + phrases.in_third_person(predicate)


def _attribute(groups: dict[str, str], template: str, value: str, head: str) -> str:
    """Return the attribute of a value, of which `head` is the part without its article and occasion."""
    if template == "not *":
        return slug(groups.get("thing") or groups.get("kind") or groups.get("verb") or value)
    if template == "preferred_*":
        return named_slot(head) or f"preferred_{slug(head)}"
    if template == "home" and value.casefold() in words.COUNTRIES:
        return "country"
    noun = groups.get("noun", slug(head)).lower().replace("favourite", "favorite").replace("colour", "color")
    return template.replace("*", noun.replace(" ", "_"))


def _read_switch(predicate: str) -> list[ClauseClaim]:
    match = _SWITCHED.fullmatch(predicate)
    if not match or not phrases.is_own_thing(match["new"]):
        return []
    attribute = named_slot(match["new"]) or f"uses_{slug(match['new'])}"
    claim = ClauseClaim(_E, attribute, match["new"], f"{{who}} switched to {match['new']}", cue=Cue.CHANGE)
    return [*_dropped(match["old"]), claim]


def _read_decision(predicate: str) -> list[ClauseClaim]:
    match = _DECIDED.fullmatch(predicate)
    decided = (match["act"] or match["thing"]) if match else ""
    if not match or not _CHECKS["action" if match["act"] else "thing"](decided):
        return []
    chosen, _, replaced = re.sub(r"^(?:using|use|adopting|adopt) ", "", decided).partition(" instead of ")
    limited = _PURPOSE.fullmatch(chosen)
    occasion = limited["occasion"] if limited else None
    value = f"against {chosen}" if match["against"] else chosen
    statement = f"{{who}} decided {match['against'] or ('to ' if match['act'] else 'on ')}{decided}"
    return [*_dropped(replaced), ClauseClaim(_D, slug(occasion or chosen), value, statement, limited_to=occasion)]


def _dropped(tool: str | None) -> list[ClauseClaim]:
    statement = f"{{who}} no longer uses {tool}"
    return [ClauseClaim(_D, slug(tool), tool, statement, SpeechAct.RETRACT, Cue.CHANGE)] if tool else []


def _read_request(text: str) -> list[ClauseClaim]:
    """Return what the assistant is asked to do, or to stop doing, from now on."""
    match = _REQUEST.fullmatch(text)
    if not match or not _is_for_good(match):
        return []
    mark, verb, order = (match["mark"] or "").lower(), match["verb"].lower(), match["order"]
    is_over, is_denied = mark == "stop", mark not in ("always", "stop", "")
    wish = f"{'never' if is_denied else 'always'} {words.GERUNDS.get(verb, verb)} {order}"
    statement = f"{{who}} {'no longer ' if is_over else ''}wants the assistant to {wish.replace(' your ', ' its ')}"
    language = None if is_denied else re.fullmatch(rf"(?i)(?:to me )?in ({words.LANGUAGES})", order)
    attribute, value = ("answer_language", language[1]) if language else (slug(order), wish)
    act, cue = (SpeechAct.RETRACT, Cue.CHANGE) if is_over else (SpeechAct.STATE, None)
    return [ClauseClaim(_P, attribute, value, statement, act, cue)]


def _is_for_good(request: re.Match[str]) -> bool:
    """Return whether a request is about all answers to come, not about something at hand ("use the table")."""
    mark, order = (request["mark"] or "").lower(), request["order"]
    if (mark == "stop") != request["verb"].lower().endswith("ing"):
        return False
    is_for_good = request["first"] or request["last"] or mark or _STANDING.match(order)
    is_at_hand = mark not in ("always", "never") and re.match(r"(?i)(?:the|an?) ", order)
    return bool(is_for_good) and not is_at_hand and phrases.is_thing(re.sub(r"^your ", "", order))


class WithdrawnClaim(NamedTuple):
    """A claim or topic that its speaker asks to erase, or a claim that is denied (a correction) or over."""

    act: SpeechAct
    claim: str
    cue: Cue | None = None
    topic: str | None = None


def find_withdrawal(clause: str) -> WithdrawnClaim | None:
    """Return what a clause without lead asks to forget, denies, or says is over; None if there is nothing."""
    if match := _TOPIC.fullmatch(clause):
        return WithdrawnClaim(SpeechAct.ERASE, "", topic=match["about"] or match["topic"])
    if match := _FORGET.fullmatch(clause):
        claim = match["own"] or match["claim"]
        topic = re.sub(r"^(?:I|we)(?:'m|'re|'ve| am| are| have)? ", "", claim)
        return WithdrawnClaim(SpeechAct.ERASE, claim, topic=topic if topic != claim else None)
    if match := _DENIED.fullmatch(clause):
        return WithdrawnClaim(SpeechAct.RETRACT, match["claim"], Cue.CORRECTION)
    ended = _ended_claim(clause)
    return WithdrawnClaim(SpeechAct.RETRACT, ended, Cue.CHANGE) if ended else None


def _ended_claim(clause: str) -> str | None:
    """Return what a clause says is over, in the words of when it was true: "I no longer work" ends "I work"."""
    if match := _ENDED.fullmatch(clause.replace(" isn't ", " is not ")):
        return f"{match['head']} {match['over'] or match['not'] or match['dont']}"
    if match := _STOPPED.fullmatch(clause):
        verb = f"work {match['job']}" if match["job"] else words.GERUNDS.get(match["gerund"].lower(), "")
        return f"{match['head']} {verb}{match['others'] or ''}"
    match = _NOT_SO.fullmatch(clause)
    if match and match["head"]:
        return f"{match['head']}{match['be'] or ''} {match['claim']}"
    return (match["called"] or f"my name is {match['name']}") if match else None
