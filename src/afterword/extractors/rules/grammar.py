"""The grammar of the offline rules: what a plain clause states, requests or plans. Pure.

A row of the grammar is a pattern, a kind, and a template for the attribute. Groups of the pattern, such as `place`,
must pass the check of the same name in `_CHECKS`. The group `v` is the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from afterword.extractors.rules import phrases
from afterword.extractors.rules import vocabulary as words
from afterword.extractors.rules.vocabulary import attribute_of_phrase, known_attribute
from afterword.extractors.slot_relation import SINGLE_VALUED
from afterword.facts.assertions import Cue, Kind, SpeechAct
from afterword.facts.words import word_set

_E, _P, _D = Kind.ENTITY, Kind.PREFERENCE, Kind.DECISION
_FAMILY = f"{words.RELATIONS}|{words.PETS}"
_NOT = r"(?:don't|do not|never|can't|cannot|hardly ever|rarely)"
_LANGUAGES = rf"(?:{words.LANGUAGES})(?:(?:, (?:and )?| and )(?:a (?:little|bit of) |some )?(?:{words.LANGUAGES}))*"
_OFTEN = r"(?:always|usually|normally|typically|often|only|mostly)"
_GOT = r"(?:have )?(?:just )?"
_FOR_GOOD = r"(?:from now on|in (?:the )?future|going forward|as a rule|at all times|always)"
_OCCASION = re.compile(r"(?i)(?P<main>.+?) (?:for|on|in|at|during|while|after|before|with) (?P<occasion>.+)")
_PURPOSE = re.compile(r"(?i)(?P<main>.+?) (?:for|as) (?P<occasion>(?:the|our|my|all) .+|\w+)")
_OF_OTHERS = word_set("responsibility plan home country employer job origin age allergy condition diet language")
_OF_RELATIVES = _OF_OTHERS | {"event", "studies", "teaches", "business"}
_DECIDED = re.compile(
    r"(?i)(?:have )?(?:(?:decided|agreed|opted|chosen) (?:(?P<against>not to |against )|to (?!go with))(?P<act>.+)|"
    r"(?:(?:decided|agreed|settled|opted) (?:on|for|to go with)|chose(?! to)|chosen(?! to)|picked(?! up)|"
    r"(?:will |let )?go with|(?:went|gone) with|am going (?:to go )?with) (?P<thing>.+?)(?: over .+)?)"
)
_SWITCHED = re.compile(r"(?i)(?:have )?(?:switched|migrated|changed) (?:over )?(?:from (?P<old>.+?) )?to (?P<new>.+)")
_DROPPED = re.compile(r"(?i)(?:have )?(?:dropped|ditched|abandoned|scrapped|got(?:ten)? rid of|cancell?ed) (?P<old>.+)")
_REQUEST = re.compile(
    rf"(?i)(?:(?P<first>{_FOR_GOOD}),? )?(?:please )?(?:(?:I(?: want|'d like| would like| need) you|make sure|be sure|"
    rf"remember|you (?:should|must|need)|take care) (?:to )?)?(?:please )?"
    rf"(?:(?P<mark>always|never|don't ever|don't|do not|stop) )?(?P<verb>{words.INSTRUCTION}|\w+ing) (?P<order>.+?)"
    rf"(?:,? (?:please,? )?(?P<last>{_FOR_GOOD}))?"
)
_CONDITION = re.compile(r"(?:,? especially)? when(?:ever)? (?:I ask (?:you )?(?:about|for)|(?:you )?\w+ing) [\w ,'-]+$")
_STANDING = re.compile(
    r"(?i)(?:your |my |all |the )?(?:answers|replies|responses|summaries|messages|explanations|emails|reports)\b"
)


class ClauseClaim(NamedTuple):
    """What a clause says: an attribute and its value.

    If `subject` is None, it is about the subject of the clause, which `statement` writes as `{who}`.
    """

    kind: Kind
    attribute: str
    value: str
    statement: str
    act: SpeechAct = SpeechAct.STATE
    cue: Cue | None = None
    limited_to: str | None = None
    subject: str | None = None
    is_plan: bool = False


_Row = tuple[re.Pattern[str], Kind, str]

# The check that the words of a group must pass, by the name of the group.
_CHECKS: dict[str, Callable[[str], bool]] = {
    "place": phrases.is_proper_name,
    "person": phrases.is_person_name,
    "thing": phrases.is_thing,
    "kind": phrases.is_kind_of_thing,
    "action": lambda phrase: phrases.is_thing(phrase) and phrase.split()[0].lower() not in words.VAGUE_VERBS,
    "event": phrases.is_event,
    "doing": lambda phrase: phrases.is_thing(phrase) and words.NO_ACTIVITY.isdisjoint(phrase.split()[:1]),
    "persons": lambda phrase: all(map(phrases.is_person_name, phrases.list_parts(phrase))),
    # "nuts, properly allergic" is no list
    "each": lambda phrase: (
        ("," not in phrase or " and " in phrase) and all(map(phrases.is_allergen, phrases.list_parts(phrase)))
    ),
    "named": lambda phrase: (
        phrases.is_thing(phrase) and (not re.fullmatch(r"[a-z -]+", phrase) or known_attribute(phrase) is not None)
    ),
}

# fmt: off
_AFTER_I_OR_WE: tuple[tuple[str, Kind, str], ...] = (
    (r"am called (?P<person>.+)", _E, "name"),
    (r"live in (?:an? (?:\w+ ){0,2}(?:flat|house|village|suburb) (?:in|of) )?(?P<place>.+?)(?: with .+)?", _E, "home"),
    (r"(?:am (?:based|living|at home) in|(?:have )?moved (?:back )?(?:from \w+ )?to) (?P<place>.+)", _E, "home"),
    (r"(?:am moving|move|will move|am going to move) to (?P<place>.+)", _E, "home?"),
    (r"(?:am from|was born in|grew up in) (?P<place>.+)", _E, "origin"),
    (r"(?:(?:work|am working) (?:at|for)|(?:have )?started (?:working )?at) (?P<place>.+)", _E, "employer"),
    (r"(?:will work|will start|start|am starting) at (?P<place>.+)", _E, "employer?"),
    (r"(?:have |found |accepted |started )+an? (?:new )?(?:job|position) (?:at|with) (?P<place>.+)", _E, "employer"),
    (rf"(?:work as|am)(?: an?)? (?P<v>{words.JOBS})(?: by trade)?(?: (?:at|for) (?P<place>.+))?", _E, "job"),
    (rf"(?:run|manage|own) (?P<v>an? (?P<thing>(?:[\w-]+ ){{0,3}}(?:{words.BUSINESSES})(?: .+)?))", _E, "business"),
    (r"(?:study|am studying|am majoring in) (?P<kind>[\w ]+?)(?: (?:at|in) .+)?", _E, "studies"),
    (r"teach (?P<kind>[\w ]+?)(?: (?:at|in|to) .+)?", _E, "teaches"),
    (r"work (?P<v>from home|remotely|(?:part|full)[- ]time|freelance|(?:night )?shifts)(?: on .+)?", _E, "work_mode"),
    (rf"am (?P<v>{words.NUMBERS})(?: years old)?", _E, "age"),
    (r"(?:handle|lead|am in charge of|am responsible for) (?P<thing>.+)", _E, "responsibility"),
    (r"am (?P<v>\d[\d.,]* ?(?:m|cm|met(?:er|re)s?|feet|ft)(?: \d{1,2})?)(?: tall)?", _E, "height"),
    (r"weigh (?P<v>\d[\d.,]* ?(?:kg|kilos?|lbs?|pounds|stone))", _E, "weight"),
    (rf"(?:have (?:an? )?|suffer from )(?P<v>{words.CONDITIONS})", _E, "condition"),
    (rf"am (?P<v>{words.STATES})", _E, "condition"),
    (r"am an? (?:single |proud |new )?(?P<v>(?:mother|father|mum|mom|dad|parent)(?: of \w+)?)", _E, "parent"),
    (rf"have (?P<v>(?:no|{words.NUMBERS}) (?P<noun>(?:{_FAMILY}|sibling)s|children))(?:(?:,|"
     rf" aged) \d[\w ,]*)?", _E, "number_of_*"),
    (rf"(?:am (?:on )?(?:an? )?|have been |eat |follow an? )(?P<v>{words.DIETS})(?: diet|"
     rf" food)?(?: for .+)?", _P, "diet"),
    (r"(?:am (?:very |severely |badly )?allergic|have an allergy) to (?P<each>.+)", _E, "allergy"),
    (r"have an? (?:severe |bad )?(?P<each>.+) allergy", _E, "allergy"),
    (r"am (?P<v>lactose|gluten|fructose)[- ]intolerant", _E, "intolerance"),
    (rf"{words.LIKE} (?P<kind>.+)", _P, "*"),
    (r"(?:like|love|enjoy) (?:my (?!odds|chances))?(?P<thing>(?:(?<=my )|to (?!see|know|hear|think|say)).+)", _P, "*"),
    (rf"am an? (?P<kind>(?!(?:{words.NO_SORT_OF_PERSON}) )[\w -]+?) (?:fan|lover|enthusiast|person)", _P, "*"),
    (rf"{words.DISLIKE} (?P<kind>.+)", _P, "not *"),
    (r"prefer (?P<thing>.+?)(?: to (?P<kind>.+))?", _P, "preferred_*"),
    (r"(?:would rather|(?:would )?prefer) not (?:to )?(?P<action>.+)", _P, "not *"),
    (r"(?:would (?:rather|prefer to)|prefer to) (?P<action>.+)", _P, "preferred_*"),
    (rf"(?:speak (?:fluent )?|am fluent in |am a native speaker of )(?P<each>{_LANGUAGES})", _E, "language"),
    (rf"am (?P<v>(?:{words.ACTIVITIES}) ?(?P<event>.+))", _D, "activity"),
    (rf"have been (?P<v>(?:{words.LONG_DONE})(?: (?P<event>.+))?)", _E, "activity"),
    (r"(?:always |usually )(?:take|book|choose) (?P<v>(?:the |an? )?(?:window|aisle)(?: seats?)?)", _P, "seat"),
    (rf"(?:{_OFTEN} )?(?:use|am using) (?P<thing>(?!the ).+)", _E, "uses_*"),
    (rf"(?:{_NOT} (?P<verb>{words.HABITS})|{_OFTEN} (?:{words.OFTEN_DONE}))(?: (?P<thing>.+))?", _P, "not *"),
    (rf"(?P<verb>{words.OFTEN_DONE})(?: (?P<thing>[\w -]+?))?? {words.FREQUENCY}(?: (?:before|"
     rf"after) \w+)?", _P, "not *"),
    (r"(?:(?:eat|drink|play(?! dumb| dead| safe| nice| hard| along| with)|drive|own|ride|wear) (?P<thing>.+)|smoke|"
     r"paint|swim|cook|bake|garden|knit)", _P, "not *"),
    (r"am married to (?P<person>.+)", _E, "spouse"),
    (rf"have (?:an? (?:\w+ )?|{words.NUMBERS} )(?P<noun>{_FAMILY})s?(?: called| named|,|"
     rf":) (?P<persons>.+)", _E, "relation"),
    (rf"{_GOT}(?:got|gotten) (?:engaged|married|divorced|promoted)(?: to (?P<person>.+))?", _E, "event"),
    (r"(?:have )?(?:graduated|passed away|died|was born|got a promotion|had a baby(?: (?:boy|girl))?)", _E, "event"),
    (rf"have (?P<v>an? (?:[\w-]+ ){{0,2}}(?P<noun>{_FAMILY}))", _E, "has_*"),
    (r"(?:take|drink) (?:my|our) (?P<thing>(?:coffee|tea) .+)", _P, "likes_*"),
    (rf"{_GOT}(?:{words.HAPPENED})(?: |(?<= ))(?P<event>.+)", _E, "event"),
    (r"(?:plan|am planning) to (?P<action>.+)", _D, "plan?"),
)
_WHOLE_SENTENCES: tuple[tuple[str, Kind, str], ...] = (
    (r"my name is (?P<person>.+)", _E, "name"),
    (r"my home is in (?P<place>.+)", _E, "home"),
    (r"my (?:new )?employer is (?P<place>.+)", _E, "employer"),
    (rf"my job is (?P<v>{words.JOBS})", _E, "job"),
    (r"(?:(?:please|you can|just) |(?:everyone|everybody|people|my friends) )?calls? me (?P<person>.+)", _P, "called"),
    (rf"(?:my|the) (?P<event>[\w-]+(?: [\w-]+)?) (?:is|starts|opens) {words.FREQUENCY}(?: at [\w:]+)?", _E, "*_time"),
    (r"my (?P<noun>favou?rite (?!part|exercise)[\w-]+) is (?P<thing>[^,]+)", _P, "*"),
    (rf"(?:my|the) (?:new )?(?P<noun>{words.PERSONS}|{words.JOBS}) is (?P<person>.+)", _E, "*"),
    (rf"(?:my|the(?= deadline| budget)) (?:new )?(?P<noun>{words.OWNED}) is (?:on (?=\d))?(?P<named>.+)", _E, "*"),
    (r"my favou?rite (?P<noun>(?!part|exercise)\w+?)s are (?P<thing>.+)", _P, "likes_*"),
    (r"my (?:\w+ )?(?P<noun>goal|dream|plan|aim|target) is to (?P<action>.+)", _D, "aim"),
)
# These rows are only read if the clause names a day: what somebody does on that day, and what takes place.
_ON_A_DAY: tuple[tuple[str, Kind, str], ...] = (
    (r"(?:am|will be) (?P<doing>\w+ing(?: .+)?)", _D, "plan?"),
    (r"(?:am going to|will) (?P<action>.+)", _D, "plan?"),
    (r"am (?P<v>getting married(?: to .+)?)", _D, "plan?"),
    (r"have (?P<event>an? .+)", _D, "plan?"),
    (r"am (?P<v>(?:on|in(?! trouble)|at|off|away)(?: (?P<event>.+))?)", _E, "whereabouts"),
)
_TAKES_PLACE: tuple[tuple[str, Kind, str], ...] = (
    (r"(?:my|the) (?P<event>(?!next|last|first|only|same)[\w-]+(?: [\w-]+)?) (?:is|starts|begins|will be|takes place|"
     r"is due|is scheduled(?: for)?|leaves|departs|arrives|ends|expires)", _E, "takes_place?"),
)
# fmt: on
_OF_SUBJECT, _OF_SENTENCE, _DATED_OF_SUBJECT, _DATED_OF_SENTENCE = (
    tuple((re.compile(pattern, re.IGNORECASE), kind, template) for pattern, kind, template in table)
    for table in (_AFTER_I_OR_WE, _WHOLE_SENTENCES, _AFTER_I_OR_WE + _ON_A_DAY, _WHOLE_SENTENCES + _TAKES_PLACE)
)


def read_clause(clause: phrases.Clause, *, is_dated: bool = False) -> list[ClauseClaim]:
    """Return what a clause says if the grammar understands all of it. About others than the speaker, only plain facts.

    `is_dated` says that the clause named a day at its end, which is not part of the predicate.
    """
    predicate = re.sub(r"(?i)^(?:my|our) ", "my ", clause.predicate)
    name = predicate.removeprefix("am ")
    if clause.is_greeted and clause.has_subject and phrases.is_person_name(name):
        return [ClauseClaim(_E, "name", name, f"{{who}}'s name is {name}")]
    tables = (_DATED_OF_SENTENCE, _DATED_OF_SUBJECT) if is_dated else (_OF_SENTENCE, _OF_SUBJECT)
    if row := _matching_row(predicate, tables[clause.has_subject]):
        return _fit_to_clause(clause, predicate, list(_row_claims(predicate, *row)))
    if not clause.has_subject:
        return _read_request(predicate)
    return [] if clause.who else _read_dropped_tool(predicate) or [*_read_switch(predicate), *_read_decision(predicate)]


def _fit_to_clause(clause: phrases.Clause, predicate: str, claims: list[ClauseClaim]) -> list[ClauseClaim]:
    """Return the claims of a row with the cue of the clause, without those that its subject cannot have."""
    cue = clause.cue or (Cue.CHANGE if re.match(r"(?i)(?:have )?(?:moved|started)\b|my new\b", predicate) else None)
    claims = [claim._replace(cue=cue) for claim in claims]
    if clause.is_several:
        several = "{who} " + re.sub(r"^am\b", "are", predicate)
        claims = [claim._replace(statement=several) for claim in claims[:1] if len(claims) == 1]
    return [claim for claim in claims if not clause.who or _may_be_about_others(claim, clause)]


def _may_be_about_others(claim: ClauseClaim, clause: phrases.Clause) -> bool:
    """Return whether a claim may be about somebody other than the speaker. More claims may be about relatives."""
    if clause.relation or "{who}" in (clause.who or ""):
        return claim.attribute in _OF_RELATIVES or (claim.kind is _P and claim.attribute != "called")
    is_liking = re.match(rf"{words.LIKE}|{words.DISLIKE}|prefer|don't (?:eat|drink)", clause.predicate) is not None
    return claim.attribute in _OF_OTHERS or (claim.kind is _P and is_liking)


def _matching_row(predicate: str, table: Iterable[_Row]) -> tuple[dict[str, str], Kind, str] | None:
    """Return the named groups, the kind and the template of the first row that matches a whole predicate, or None."""
    for pattern, kind, template in table:
        match = pattern.fullmatch(predicate)
        groups = {name: text for name, text in match.groupdict().items() if text} if match else {}
        if match and all(_CHECKS[name](text) for name, text in groups.items() if name in _CHECKS):
            return groups, kind, template
    return None


def _row_claims(predicate: str, groups: dict[str, str], kind: Kind, template: str) -> Iterator[ClauseClaim]:
    """Yield the claims of a row.

    In `template`, a star stands for the head noun, "not" makes the whole predicate the value, and "?" marks a plan.
    """
    is_plan, template = template.endswith("?"), template.removesuffix("?")
    named = next((groups[name] for name in ("v", *_CHECKS) if name in groups), predicate)
    main, limited_to = _split_limit(_OCCASION, named) if _may_be_limited(template, groups) else (named, None)
    head = re.sub(r"^the ", "", main)
    if template == "relation":
        yield from (relation_claim(name, groups["noun"].lower()) for name in phrases.list_parts(named))
        return
    if template == "preferred_*" and named.startswith("the ") and known_attribute(head) is None:
        return
    if template == "job" and "place" in groups:
        yield ClauseClaim(_E, "employer", groups["place"], f"{{who}} works at {groups['place']}")
    statement, attribute = _statement(predicate, groups, template, named), _attribute(groups, template, named, head)
    said = statement.removeprefix("{who} ")
    value = {"not *": predicate.removeprefix("am "), "event": said, "plan": said}.get(template, named)
    for part in phrases.list_parts(value) if "each" in groups else [value]:
        yield ClauseClaim(kind, attribute, part, statement.replace(value, part), limited_to=limited_to, is_plan=is_plan)


def _may_be_limited(template: str, groups: dict[str, str]) -> bool:
    """Return whether the value of a row may name an occasion for which alone it holds: "tea for breakfast"."""
    return template in ("preferred_*", "uses_*") or groups.get("noun", "").lower() in ("budget", "limit")


def _split_limit(pattern: re.Pattern[str], text: str) -> tuple[str, str | None]:
    """Return a text without the occasion or purpose at its end that the pattern finds, and the occasion or None."""
    limited = pattern.fullmatch(text)
    return (limited["main"], limited["occasion"]) if limited else (text, None)


def relation_claim(name: str, relation: str) -> ClauseClaim:
    """Return the claim that somebody has this relation to the speaker: "Runa is {who}'s wife"."""
    return ClauseClaim(_E, "relation", relation, f"{name} is {{who}}'s {relation}", subject=name)


def _statement(predicate: str, groups: dict[str, str], template: str, value: str) -> str:
    if template == "called":
        return f"{{who}} wants to be called {value}"
    if template == "job" and "place" in groups:
        return f"{{who}} is a {value}"
    if predicate.lower().startswith("the "):
        return predicate
    return "{who}'s" + predicate[2:] if predicate.startswith("my ") else "{who} " + phrases.in_third_person(predicate)


def _attribute(groups: dict[str, str], template: str, value: str, head: str) -> str:
    """Return the attribute for a template. `head` is the value without article and occasion."""
    if template in ("*", "not *") and "noun" not in groups:
        topic = attribute_of_phrase(next((groups[name] for name in ("thing", "kind", "verb") if name in groups), value))
        return f"likes_{topic}" if topic in SINGLE_VALUED else topic
    if template == "preferred_*":
        return known_attribute(head) or f"preferred_{attribute_of_phrase(head)}"
    if template == "takes_place":
        return f"{attribute_of_phrase(value)}_date"
    if template == "home" and value.casefold() in words.COUNTRIES:
        return "country"
    noun = groups.get("noun", attribute_of_phrase(head)).lower().replace(" ", "_")
    return template.replace("*", noun.replace("favourite", "favorite").replace("colour", "color"))


def _read_switch(predicate: str) -> list[ClauseClaim]:
    match = _SWITCHED.fullmatch(predicate)
    if not match or not phrases.is_kind_of_thing(match["new"]):
        return []
    attribute = known_attribute(match["new"]) or f"uses_{attribute_of_phrase(match['new'])}"
    claim = ClauseClaim(_E, attribute, match["new"], f"{{who}} switched to {match['new']}", cue=Cue.CHANGE)
    return [*_dropped_tool_claims(match["old"]), claim]


def _read_decision(predicate: str) -> list[ClauseClaim]:
    match = _DECIDED.fullmatch(predicate)
    decided = (match["act"] or match["thing"]) if match else ""
    if not match or not _CHECKS["action" if match["act"] else "thing"](decided):
        return []
    chosen, _, replaced = re.sub(r"^(?:using|use|adopting|adopt) ", "", decided).partition(" instead of ")
    _, occasion = _split_limit(_PURPOSE, chosen)
    value = f"against {chosen}" if match["against"] else chosen
    statement = f"{{who}} decided {match['against'] or ('to ' if match['act'] else 'on ')}{decided}"
    decision = ClauseClaim(_D, attribute_of_phrase(occasion or chosen), value, statement, limited_to=occasion)
    return [*_dropped_tool_claims(replaced), decision]


def _read_dropped_tool(predicate: str) -> list[ClauseClaim]:
    match = _DROPPED.fullmatch(predicate)
    return _dropped_tool_claims(match["old"], "dropped") if match and _CHECKS["named"](match["old"]) else []


def _dropped_tool_claims(tool: str | None, verb: str = "no longer uses") -> list[ClauseClaim]:
    statement = f"{{who}} {verb} {tool}"
    return [ClauseClaim(_D, attribute_of_phrase(tool), tool, statement, SpeechAct.RETRACT, Cue.CHANGE)] if tool else []


def _read_request(text: str) -> list[ClauseClaim]:
    """Return what the assistant is asked to do or to stop doing from now on."""
    request, condition = _split_condition(text)
    match = _REQUEST.fullmatch(request)
    if not match or not _is_for_good(match):
        return []
    mark, verb = (match["mark"] or "").lower(), match["verb"].lower()
    is_denied = mark not in ("always", "stop", "")
    order = re.sub(r"(?i)\b(?:my|our)\b", "their", re.sub(r"(?i)\b(?:me|us)\b", "them", match["order"]))
    wish = f"{'never' if is_denied else 'always'} {words.GERUNDS.get(verb, verb)} {order}"
    act, cue, ended = (SpeechAct.RETRACT, Cue.CHANGE, "no longer ") if mark == "stop" else (SpeechAct.STATE, None, "")
    statement = f"{{who}} {ended}wants the assistant to {wish.replace(' your ', ' its ')}{condition}"
    language = None if is_denied else re.fullmatch(rf"(?i)(?:to me )?in ({words.LANGUAGES})", order)
    attribute, value = ("answer_language", language[1]) if language else (attribute_of_phrase(order), wish)
    attribute = "answers" if attribute in SINGLE_VALUED - {"answer_language"} else attribute
    return [ClauseClaim(_P, attribute, value, statement, act, cue, condition.strip() or None)]


def _split_condition(text: str) -> tuple[str, str]:
    """Return a request, and the condition at its end in the third person, empty if there is none."""
    condition = _CONDITION.search(text)
    return (text[: condition.start()], condition.group().replace(" I ", " they ")) if condition else (text, "")


def _is_for_good(request: re.Match[str]) -> bool:
    """Return whether a request is about all future answers, and not about the present one ("use the table")."""
    mark, order = (request["mark"] or "").lower(), request["order"]
    if (mark == "stop") != request["verb"].lower().endswith("ing"):
        return False
    is_for_good = request["first"] or request["last"] or mark or _STANDING.match(order)
    is_at_hand = mark not in ("always", "never") and re.match(r"(?i)(?:the|an?) ", order)
    return bool(is_for_good) and not is_at_hand and phrases.is_thing(re.sub(r"(?i)\b(?:your|me|us|my|our) ", "", order))
