"""Wishes to be off the record in words that were written without looking at the patterns, and honest turns."""

from __future__ import annotations

from collections.abc import Iterator

from off_record_cases import SECRET_SENTENCE, RecordCase

_WISHES = (
    "So, off the record here, {s}", "Oh and off the record: {s}", "ok off the record for a sec. {s}", "Totally off-the-record thing: {s}", "(this is off the record) {s}", "[OFF THE RECORD] {s}", "*** off the record *** {s}",
    "Off the record, please. {s}", "off the record!! {s}", "OFF RECORD: {s}", "off record: {s}", "Let's keep the next bit off the record. {s}", "Keep it off the record, but {s}", "This one's off the record. {s}",
    "What follows is off the record. {s}", "Everything I say now is off the record: {s}", "I'd rather keep this off the record: {s}", "Can we talk off the record? {s}", "Could you go off the record for this? {s}", "mind if we go off the record? {s}",
    "going off record for a moment: {s}", "We're off the record, right? {s}", "I say this off the record: {s}", "Speaking strictly off the record: {s}", "Just so you know, off the record, {s}", "Off the record and just to you: {s}", "off the record -> {s}",
    "{s} -- off the record!", "{s} (that's off the record)", "{s}. All of this is off the record.", "{s}. Keep that off the record please.", "{s}. Off the record, obviously.", "{s}, strictly off the record", "{s} [off the record]",
    "/offrecord {s}", "/off-the-record\n{s}", "/Off-Record: {s}", "!off-record {s}", "#offtherecord {s}", "off the record 🤫 {s}", "🔒 Off the record: {s}", "Off—the—record: {s}", "o f f  the record: off the record {s}", "Off the  record : {s}",
    "Don't keep this: {s}", "Please don't keep any of this. {s}", "Don't put this in your memory: {s}", "Please do not memorise this: {s}", "don't log this. {s}", "Not to be remembered: {s}", "You don't need to remember this: {s}", "No need to save this: {s}",
    "Please forget this as soon as I've said it: {s}", "Nothing of what follows may be stored. {s}", "This stays out of your notes: {s}", "Leave this out of your memory: {s}", "Don't add this to memory. {s}", "{s}. Please don't store it.", "{s}. Don't note this down.",
    "{s} - don't save that please", "{s}. You must not remember this.", "{s} (do not store)", "Do not store: {s}", "not for your memory: {s}", "don't remember what I say now: {s}", "Please don't record my next sentence. {s}", "Do not keep a record of this. {s}",
    "Stop recording for a moment. {s}", "Pause your memory for this: {s}", "Turn off memory for this one: {s}", "no memory for this please: {s}", "Without saving it: {s}", "Unofficially speaking, {s}", "Not on the record: {s}", "This isn't for the record: {s}", "Nothing here goes on record: {s}",
    "don't hold on to this: {s}", "I don't want this saved. {s}", "I don't want you to remember this: {s}", "I'd prefer that you don't save this. {s}", "Make sure this isn't stored: {s}", "This message should not be kept. {s}",
    "Das bleibt bitte off the record: {s}", "Das ist nicht zum Speichern: {s}", "Bitte merk dir das nicht: {s}", "Speicher das nicht: {s}", "Bitte nicht merken: {s}", "Unter uns und nicht fürs Protokoll: {s}", "Das soll nicht gespeichert werden: {s}", "Ich möchte nicht, dass du dir das merkst: {s}",
    "Esto es off the record: {s}", "Por favor, no guardes esto: {s}", "No lo guardes: {s}", "Esto no debe guardarse: {s}", "No quiero que guardes esto: {s}", "Ceci est off the record : {s}", "N'enregistre pas ceci : {s}", "Ne garde pas ça en mémoire : {s}", "Je ne veux pas que tu retiennes ça : {s}",
    "Questo è off the record: {s}", "Non memorizzare questo: {s}", "Non salvarlo: {s}", "Isto é off the record: {s}", "Não guardes isto: {s}", "Não memorizes isto: {s}", "Dit is off the record: {s}", "Bewaar dit niet: {s}", "Niet opslaan: {s}", "Onthoud dit alsjeblieft niet: {s}",
)  # fmt: skip
_LATER = (
    *("Hey, quick one off the record: {s}","Now strictly between you and me and off the record: {s}","Off the record? {s}","I'm going to say something off the record now: {s}","Take this off the record: {s}","{s}. That part is off the record.","This must stay off the record, {s}","Anything I tell you in this message is off the record. {s}","ok, going off-record. {s}","Off-record comment: {s}","Let me go off the record here. {s}","Please do not write any of this down. {s}","You shouldn't store this: {s}","This isn't to be saved: {s}","Please keep what I say next out of your memory: {s}","I'd rather you didn't save this: {s}","No notes on this please: {s}","Don't file this anywhere: {s}","Do me a favour and don't remember this: {s}","{s}. Don't keep that.","{s}, but don't write it down","{s}. I don't want that stored.","Speichere nichts davon: {s}","Das hier bitte nicht aufschreiben: {s}","Esto que no quede guardado: {s}","Ne note rien de ceci : {s}","Questo non va salvato: {s}","Isto não é para guardar: {s}","Dit hoeft niet bewaard te worden: {s}","Can we keep this one off the record? {s}"),
    *("Before I go on: off the record. {s}","Sshh, off the record: {s}","Look, off the record and all that, {s}","you didn't hear this, off the record: {s}","Off-the-record question: {s}, what do you think?","I want this to be off the record: {s}","Only off the record: {s}","can this conversation be off the record? {s}","I'm off the record now. {s}","keep everything below off the record\n{s}","{s}. But please treat that as off the record.","Please skip remembering this: {s}","You needn't save this: {s}","Please make no note of this: {s}","Don't you dare save this: {s}","I hope you don't store this: {s}","This is not something to save: {s}","Erase nothing, but don't record this: {s}","Nothing I say today should be remembered. {s}","do not commit this to memory: {s}","Bitte speichere davon nichts: {s}","Nichts hiervon notieren, bitte: {s}","Por favor no anotes nada de esto: {s}","Merci de ne rien noter de ceci : {s}","Per favore non annotare questo: {s}","Por favor não anotes isto: {s}","Graag dit niet bewaren: {s}","Ich sage das off the record: {s}","Te lo digo off the record: {s}","Je te dis ça off the record : {s}"),
)  # fmt: skip
_HONEST = (
    "What does off the record mean?", "The minister said off the record that taxes will rise.", "He talked to a journalist off the record yesterday.", "I collect vinyl; the shop took it off the record shelf.",
    "Don't forget that I'm allergic to nuts.", "Please remember that I live in Oslo.", "Don't save the file in that folder.", "Please don't store milk in the door of the fridge.", "Keep this short, please.", "I don't remember this restaurant.", "For the record, I live in Oslo.",
    "My record is 42 minutes over ten kilometres.", "How do I turn off the recording on my camera?", "Don't record the meeting on Friday, Tom objects.", "We never saved any money in Oslo.", "Is it stored anywhere that I live in Oslo?", "It was an off-the-record briefing, she explained.",
    "Don't put this on my calendar.", "I don't want this colour.", "Note that I'm vegetarian.", "The singer took 'Off the Record' as the title.", "I keep no memory of that trip.", "Please don't remind me of this again.", "Stop sending me long answers.",
)  # fmt: skip


def fresh_record_cases() -> Iterator[RecordCase]:
    """Yield each wish with a sentence that must not be stored, and each honest turn."""
    for template in _WISHES:
        yield RecordCase("fresh wish", template.format(s=SECRET_SENTENCE), is_hidden=True)
    for template in _LATER:
        yield RecordCase("later wish", template.format(s=SECRET_SENTENCE), is_hidden=True)
    for text in _HONEST:
        yield RecordCase("fresh honest turn", text, is_hidden=False)
