"""Generated wordings of the wish to be off the record, by form, and sentences that only speak about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SECRET_SENTENCE = "I will quit my job in Lindau"


@dataclass(frozen=True, slots=True)
class RecordCase:
    """A turn of a person, and whether it must be hidden."""

    category: str
    text: str
    is_hidden: bool


_BARE = (
    "off the record: {s}", "off the record, {s}", "Off the record {s}", "OFF THE RECORD - {s}", "off-the-record: {s}",
    "Off the record... {s}", "(off the record) {s}", "[off the record] {s}", "{s} (off the record)", "{s}, off the record.",
    "{s} - off the record!", "Off the record – {s}", "off the record\n{s}", "{s}. Off the record.", "{s}. This is off the record.",
    "off  the  record: {s}", "off\tthe record: {s}", "“Off the record”: {s}", "*Off the record* {s}", "**off the record** {s}",
    "__off the record__: {s}", "`off the record` {s}", "> off the record: {s}", "# Off the record\n{s}", "- off the record: {s}",
    "🤫 off the record: {s}", "off_the_record: {s}", "Off. The. Record. off the record: {s}",
)  # fmt: skip
_LED = (
    "Hey, off the record, {s}", "Just off the record: {s}", "Strictly off the record: {s}", "Totally off the record - {s}",
    "Ok so, off the record: {s}", "By the way, off the record: {s}", "Between us and off the record: {s}",
    "This is off the record: {s}", "This stays off the record: {s}", "Let me say this off the record: {s}",
    "Can I tell you something off the record? {s}", "I want to tell you something off the record. {s}",
    "Please keep this off the record: {s}", "Please treat this as off the record. {s}", "Could we go off the record for a moment? {s}",
    "What I say next is off the record: {s}", "I'm speaking off the record here: {s}", "Speaking off the record, {s}",
    "Completely off the record, ok? {s}", "Anna, off the record: {s}", "Hey Anna, this is off the record: {s}",
    "Going off the record now. {s}", "Let's go off the record. {s}", "We are off the record now: {s}", "{s}, but that's off the record",
    "{s} and please keep that off the record", "I need to be off the record for this: {s}", "Quick note off the record: {s}",
    "Everything that follows is off the record: {s}", "I'm telling you this off the record: {s}", "off the record please: {s}",
    "My next message is off the record. {s}", "For now, off the record: {s}", "Honestly, off the record, {s}", "Sorry, off the record: {s}",
    "Can this be off the record? {s}", "May I go off the record? {s}", "fyi off the record: {s}", "Off the record, if you don't mind: {s}",
    "/off-record {s}", "/off_record {s}", "/off record {s}", "/OFF-RECORD {s}", "  /off-record {s}", "/off-the-record {s}", "**/off-record** {s}",
)  # fmt: skip
_DISGUISED = (
    "off\u00a0the\u00a0record: {s}", "o\u200bff the rec\u200bord: {s}", "оff the reсord: {s}", "ｏｆｆ　ｔｈｅ　ｒｅｃｏｒｄ: {s}",
    "off\u2011the\u2011record: {s}", "off the rec\u00adord: {s}", "\u202aoff the record\u202c: {s}", "\ufeffoff the record: {s}",
    "𝐨𝐟𝐟 𝐭𝐡𝐞 𝐫𝐞𝐜𝐨𝐫𝐝: {s}", "off the re\u0336cord: {s}",
)  # fmt: skip
_OTHER_WORDS = (
    "Not for the record: {s}", "Don't save this: {s}", "Please don't remember this. {s}", "Do not record this: {s}",
    "Please don't store this, {s}", "Don't write this down: {s}", "Don't take notes of this: {s}", "This must not be stored: {s}",
    "{s}. Don't remember that.", "{s} (don't save this)", "This should not be saved: {s}", "Unofficially, {s}", "{s}, not for the record",
    "Keep this out of your memory: {s}", "This is not to be recorded: {s}", "{s}. And don't write that down anywhere.",
)  # fmt: skip
_FOREIGN = {
    "de": ("Nicht fürs Protokoll: {s}", "Bitte nicht speichern: {s}", "Merk dir das nicht: {s}", "Inoffiziell: {s}", "Off the record: {s}", "Speichere das bitte nicht. {s}", "Off the record gesagt: {s}", "{s}, off the record"),
    "es": ("Extraoficialmente, {s}", "No guardes esto: {s}", "No recuerdes esto. {s}", "Off the record: {s}", "Fuera de registro: {s}", "Que no conste: {s}"),
    "fr": ("Ne retiens pas ça : {s}", "Officieusement, {s}", "Ne note pas ça : {s}", "Hors micro : {s}", "Off the record : {s}", "N'enregistre pas ça : {s}"),
    "it": ("Non salvare questo: {s}", "Ufficiosamente, {s}", "Off the record: {s}", "Non registrare questo, {s}"),
    "pt": ("Não guardes isto: {s}", "Em off: {s}", "Não registre isso: {s}", "Off the record: {s}"),
    "nl": ("Onthoud dit niet: {s}", "Sla dit niet op: {s}", "Off the record: {s}", "Niet voor de notulen: {s}"),
}  # fmt: skip
_HONEST = (
    "He told me off the record that he quits.", "My boss said off the record that sales are down.", "What does off the record mean?",
    "The off the record meeting is at 3 pm.", "The minister spoke off the record.", "I hold the record for the 100 metres.", "I bought a record player.",
    "She had an off-the-record talk with him.", "Turn the recorder off, then the record stops.", "I want to go on the record: I like it.",
    "What is the difference between us and them?", "The distance between you and me is 5 km.", "Don't save the file as PDF.", "I can't remember that song.",
    "I don't remember that.", "Did you not record the song?", "Don't forget to save this document.", "Please remember this: I am vegan.", "Save this: I live in Graz.",
    "I keep this book for myself.", "The confidential report is due on Friday.", "My secret recipe uses saffron.", "We stay between Graz and Linz.",
    "Nimm das bitte auf.", "Unter uns wohnt Familie Huber.", "Entre nosotros vive un perro.", "No recuerdo su nombre.", "Je ne retiens pas les noms.",
    "Entre nous et la mer il y a une dune.", "Non ricordo il nome.", "Tra noi e loro c'è un muro.", "Não lembro o nome dele.", "Ik onthoud namen niet goed.",
    "The record shows that I was off on Monday.", "Is off the record a phrase you know?", "Turn off the recording.", "/off-recording", "He plays on and off.",
    "Between us: I want a pay rise.", "Unter uns: ich will mehr Gehalt.", "Entre nous, je suis fatigué.", "This is confidential: the launch is in May.",
    "He said it in confidence. Delete that, it is not to be kept.", "Forget what I said about Jan, don't remember that.",
    "Never write tests without names.", "I never save money.", "Do not store milk in the door.", "Keep this in the fridge.", "I took notes of the meeting.",
)  # fmt: skip


def record_cases() -> Iterator[RecordCase]:
    """Yield wishes to be off the record by form, and honest sentences."""
    forms = {
        "at the phrase": _BARE,
        "with words before it": _LED,
        "disguised": _DISGUISED,
        "in other words": _OTHER_WORDS,
    }
    for category, templates in {
        **forms,
        **{f"in other words ({name})": words for name, words in _FOREIGN.items()},
    }.items():
        for template in templates:
            yield RecordCase(category, template.format(s=SECRET_SENTENCE), is_hidden=True)
    for text in _HONEST:
        yield RecordCase("honest", text, is_hidden=False)
