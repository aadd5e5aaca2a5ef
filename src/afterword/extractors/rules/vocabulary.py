"""The words that the rules know, and the attributes that a phrase is filed under. Pure."""

from __future__ import annotations

import re

from afterword.facts.words import plain_words, word_set

LANGUAGES = (
    "English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian|Arabic|Turkish|Greek|Swedish|"
    "Norwegian|Danish|Finnish|Icelandic|Czech|Croatian|Serbian|Hungarian|Romanian|Hebrew|Hindi|Urdu|Mandarin|Chinese|"
    "Japanese|Korean|Vietnamese|Thai|Swahili|Irish|Welsh|Catalan|Persian"
)
RELATIONS = (
    "wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|spouse|mother|father|mum|mom|dad|sister|brother|son|"
    "daughter|child|kid|baby|niece|nephew|aunt|uncle|cousin|grand(?:mother|father|ma|pa|daughter|son)|flatmate"
)
PETS = "dog|cat|horse|rabbit|parrot|hamster|tortoise"
PERSONS = "boss|manager|doctor|dentist|GP|therapist|lawyer|accountant|landlord|landlady|supervisor"
OWNED = "editor|shell|browser|phone|laptop|computer|tablet|car|bike|bicycle|router|camera|shoe size|birthday|time ?zone"
DIETS = "vegan|vegetarian|pescatarian|(?:gluten|dairy)[- ]free|halal|kosher|keto|low[- ](?:carb|salt)|plant[- ]based"
CONDITIONS = "co?eliac(?: disease)?|(?:type [12] )?diabetes|asthma|epilepsy|migraines?|arthritis|hay fever|dyslexia"
JOBS = (
    "(?:(?:software|civil|data|project|graphic|school|sales|retired|freelance|senior|junior|bus|taxi) )?(?:engineer|"
    "developer|programmer|teacher|nurse|doctor|designer|manager|director|lawyer|accountant|driver|student|professor|"
    "researcher|scientist|writer|editor|consultant|analyst|architect|chef|cook|baker|carpenter|plumber|electrician|"
    "photographer|journalist|librarian|pharmacist|therapist|dentist|vet|farmer|pilot|musician|artist|painter|"
    "translator|midwife|paramedic|firefighter|secretary|mechanic|technician|biologist|chemist|gardener|surgeon|waiter)"
)
NUMBERS = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty)"
INSTRUCTION = (
    "use|include|add|start|end|provide|write|format|quote|send|check|ask|answer|reply|respond|show|"
    "mention|cite|keep|avoid|book|suggest|recommend|spell|round|sort|test|explain|summari[sz]e|list|convert|sign"
)
HABITS = (
    "eat|drink|smoke|play|drive|use|own|ride|run|swim|cycle|cook|bake|paint|sing|travel|commute|deploy|fly|work|walk|"
    "read|take|meditate|watch|attend|wear|live"
)
FREQUENCY = (
    r"(?:every (?:(?:second|other) )?(?:morning|evening|night|week(?:end)?|month|year|\w*day)|(?:on )?(?:mon|tues|"
    r"wednes|thurs|fri|satur|sun)days|on week(?:day|end)s|in the (?:morning|evening)s?|daily|(?:before|after) "
    r"(?:work|breakfast|lunch|dinner|noon)|(?:once|twice) a week)"
)
GERUNDS = {
    form: verb
    for verb in (*INSTRUCTION.split("|"), *HABITS.split("|"), "like")
    for form in (f"{verb}ing", f"{verb[:-1]}ing", f"{verb}{verb[-1]}ing")
} | {"being": "am"}
COUNTRIES = word_set(
    """argentina australia austria belgium brazil bulgaria canada chile china colombia croatia denmark egypt england
    estonia europe finland france germany ghana greece hungary iceland india indonesia iran iraq ireland israel italy
    japan kenya latvia lithuania mexico morocco nepal netherlands nigeria norway pakistan peru poland portugal romania
    russia scotland serbia slovakia slovenia spain sweden switzerland taiwan thailand ukraine usa vietnam wales"""
)
# Words that point at something else or begin another clause: a value that holds one is not understood.
POINTING = word_set(
    """it that this these those them him her he she they you your yours we us i me my what which who whom whose how why
    where when if whether because so but though although unless is are was were be been am do does did has had will
    would could should can may might must everyone everybody everything something someone somebody anything nothing
    whatever whoever one ones both all same such there here today tonight tomorrow yesterday now then once only just
    except than yet still again ever never not no too very maybe perhaps says said until otherwise either neither else
    anymore its his their don't can't won't isn't i'm it's that's probably unfortunately sorry right okay while"""
)
# After an article: what the conversation is about, which does not last.
OF_THE_TALK = word_set(
    """idea answer version option draft paragraph part line sentence suggestion example second third last latter former
    previous code bug error message reply question thing point way"""
)
NO_ALLERGEN = word_set(
    """monday tuesday wednesday thursday friday saturday sunday morning meeting work working exercise people drama
    nonsense commitment homework tax bug deadline email housework talk winter idiot lie boredom effort sport math"""
)
NO_NAME = word_set(
    """the a an it this that he she they we i you my our your there here what who how let everyone someone nobody all no
    not yes and but so or if also please just only first next last new good great sorry thanks hi hey hello ok okay
    same still happy sure well dear team today tomorrow monday tuesday wednesday thursday friday saturday sunday january
    february march april june july august september october november december mud trouble crazy back later never"""
) | frozenset(LANGUAGES.lower().split("|"))
VAGUE_VERBS = word_set(
    "wait see leave go have stop think try do ask skip get give be look sleep let say tell come stay sit talk quit"
)

_SLOTS = {
    "seat": r"(?:the |an? )?(?:window|aisle)(?: seats?)?",
    "editor": "neovim|vim|emacs|vs ?code|helix|pycharm|intellij",
    "shell": "zsh|bash|powershell|fish|nushell",
    "preferred_drink": r"(?:\w+ )?(?:tea|coffee|beer|wine|water|juice)",
}
_BREAK = re.compile(
    r"(?i)\s(?:with|without|for|from|in|on|at|of|to|and|or|as|by|before|after|over|than|every|under|instead)\b|[,.:;!()]"
)
_SKIPPED = word_set("a an the my our your some any this very more all always never dont not please new own against")


def named_slot(phrase: str) -> str | None:
    """Return the attribute of a known thing: "aisle seats" is `seat`, "Vim" is `editor`."""
    return next((name for name, nouns in _SLOTS.items() if re.fullmatch(nouns, phrase, re.IGNORECASE)), None)


def slug(phrase: str) -> str:
    """Return the head noun of a phrase as an attribute: "quiet rooms with a view" is `room`."""
    head = _BREAK.split(phrase.strip(), maxsplit=1)[0] or phrase
    words = [word for word in plain_words(head.casefold().replace("'", "")) if word not in _SKIPPED]
    return singular(words[-1])[:40] if words else "note"


def singular(word: str) -> str:
    """Return an English noun without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word
