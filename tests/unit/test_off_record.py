"""What people say off the record, and what they only say about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts.transcripts import Role, Turn
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.record_requests import HIDDEN, HIDDEN_FROM_HERE, Markers, RecordChange

MARKERS = Markers()


def talk(*said: str) -> list[Turn]:
    """Turns by `who: words`, the first letter telling who speaks."""
    roles = {"u": Role.HUMAN, "a": Role.AGENT, "t": Role.TOOL, "m": Role.MEMORY}
    return [Turn(number, one[0], roles[one[0]], one[2:]) for number, one in enumerate(said, 1)]


def shown(*said: str, markers: Markers = MARKERS) -> list[str]:
    return [turn.text for turn in hide_off_record(talk(*said), markers)]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Off the record: I hate my boss.", RecordChange.THIS),
        ("off the record, I hate my boss", RecordChange.THIS),
        ("Ok, this is strictly off the record: I quit.", RecordChange.THIS),
        ("off-the-record - I quit", RecordChange.THIS),
        ("off the record from now on", RecordChange.OFF),
        ("Off the record from here on: my boss is a fool", RecordChange.OFF),
        ("off the record please.", RecordChange.OFF),
        ("let's go off the record", RecordChange.OFF),
        ("/off-record", RecordChange.OFF),
        ("/off-record I quit", RecordChange.OFF),
        ("Thanks! Back on the record: book the hotel", RecordChange.ON),
        ("we're back on the record", RecordChange.ON),
        ("/on-record", RecordChange.ON),
        ("He told me off the record that he quits.", None),
        ("Off the record he told me that he quits.", None),
        ("off the record sales are down", RecordChange.THIS),
        ("What does off the record mean?", None),
        ("the off the record meeting: 3 pm", None),
        ("I want to go on the record: I like it", None),
        ("/off-recording", None),
    ],
)
def test_a_request_is_told_from_a_report_and_counts_in_doubt(text: str, mark: RecordChange | None) -> None:
    assert MARKERS.requested_change(text) is mark


def test_an_aside_hides_itself_and_its_answers() -> None:
    said = ("u:Hello", "a:Hi", "u:Off the record: I quit.", "a:You quit?", "t:quit()", "u:I live in Graz.", "a:Noted")
    assert shown(*said) == ["Hello", "Hi", HIDDEN, HIDDEN, HIDDEN, "I live in Graz.", "Noted"]


def test_a_stretch_is_hidden_until_it_is_over() -> None:
    said = ("u:/off-record", "a:Sure", "u:I quit.", "m:what is known", "a:Oh", "u:/on-record I live in Graz.", "a:Ok")
    expected = [HIDDEN_FROM_HERE, HIDDEN, HIDDEN, "what is known", HIDDEN, "/on-record I live in Graz.", "Ok"]
    assert shown(*said) == expected


def test_an_agents_later_repetition_is_hidden_until_the_person_says_it_again() -> None:
    said = (
        "u:Off the record: I start at a firm in Lindau.",
        "a:Oh",
        "u:Book a table.",
        "a:In Lindau?",
        "a:Booked.",
    )
    assert shown(*said) == [HIDDEN, HIDDEN, "Book a table.", HIDDEN, "Booked."]
    assert shown(*said, "u:I love Lindau.", "a:Lindau is nice")[-2:] == ["I love Lindau.", "Lindau is nice"]
    assert shown("u:off the record: my boss hates gardens", "a:x", "u:Hi", "a:So your boss hates them")[-1] == HIDDEN


def test_a_request_to_forget_is_heard_and_a_masked_secret_hides_no_turn() -> None:
    said = ("u:Forget what I told you, don't remember that.", "u:The code is [redacted: code], don't write that down.")
    assert shown(*said) == [one[2:] for one in said]


def test_other_wordings_count_only_beside_the_phrase_that_they_stand_for() -> None:
    assert shown("u:Don't save this: I quit.") == [HIDDEN]
    assert shown("u:Don't save this: I quit.", markers=Markers(off=("psst",))) == ["Don't save this: I quit."]


def test_only_people_can_go_off_the_record() -> None:
    """A tool or a web page that says so must not blind the memory."""
    said = ("a:/off-record", "t:off the record from now on", "u:I live in Graz.")
    assert shown(*said) == [one[2:] for one in said]


def test_other_markers_can_be_chosen_and_none() -> None:
    german = Markers(off=("unter uns",), on=("wieder offiziell",))
    assert shown("u:Unter uns: ich kündige.", "u:off the record: no", markers=german) == [HIDDEN, "off the record: no"]
    assert shown("u:off the record: yes", markers=Markers((), ())) == ["off the record: yes"]


@given(
    st.lists(
        st.sampled_from(
            ["u:hi", "a:yes", "u:/off-record", "u:/on-record", "u:off the record: x", "t:run", "a:off the record: no"]
        ),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_a_conversation_that_grows_is_hidden_as_if_read_at_once(said: list[str], cut: int) -> None:
    """Also where what was hidden is read again: an agent that was resumed holds placeholders."""
    whole = hide_off_record(talk(*said), MARKERS)
    first = hide_off_record(talk(*said)[:cut], MARKERS)
    assert first == whole[:cut]
    assert hide_off_record([*first, *talk(*said)[cut:]], MARKERS) == whole
    assert [turn.number for turn in whole] == list(range(1, len(said) + 1))


@pytest.mark.parametrize(
    "wish",
    [
        "Ich bin schwanger, bitte nicht speichern.",
        "Bitte nicht speichern! Ich bin schwanger.",
        "Niet opslaan aub. Ik ben zwanger.",
        "Que no conste. Tengo VIH.",
        "Make sure this doesn't get saved.",
        "Ensure that this is not saved.",
        "See to it that this isn't stored.",
        "Esto es clave, no guardes esto: tengo VIH.",
        "incognito mode: I have HIV",
    ],
)
def test_a_wish_beside_what_it_is_about_is_honoured(wish: str) -> None:
    assert Markers().requested_change(wish) is not None


@pytest.mark.parametrize(
    "statement",
    [
        "I pressed the button but it did not save. I use Windows 11.",
        "It did not show in the logs. I run Ubuntu.",
        "Can't remember that. I live in Oslo.",
        "Das steht nicht im Protokoll. Mein Arzt heißt Weber.",
        "Mon fils a du mal, il ne retient rien.",
        "Ça ne figure pas dans mon dossier.",
        "¿No recuerdas eso? Vivo en Madrid.",
        "Non ti ricordi niente? Abito a Roma.",
        "My grandmother can't remember anything.",
        "My camera won't record anything.",
        "Delete everything I told you after 14:30.",
        "Remove the chicken once golden: then rest it.",
        "Contact me by email, private message, or phone.",
        "Uso Chrome, modo incógnito, siempre.",
        "After the fall, no memory.",
    ],
)
def test_what_only_sounds_like_a_wish_stays(statement: str) -> None:
    assert Markers().requested_change(statement) is None


def test_a_command_alone_is_about_what_follows() -> None:
    assert Markers().requested_change("/incognito") is RecordChange.OFF
    assert Markers().requested_change("Don't save this chat message. I have HIV.") is RecordChange.THIS


def test_words_in_capitals_and_common_words_hide_no_answers() -> None:
    said = (
        ("OFF THE RECORD: I HAVE HIV.", Role.HUMAN),
        ("Understood.", Role.AGENT),
        ("How warm will Oslo be?", Role.HUMAN),
        ("The weather is fine, off and on.", Role.AGENT),
    )
    turns = [Turn(number, "user", role, text, None) for number, (text, role) in enumerate(said, 1)]
    assert hide_off_record(turns, Markers())[3].text == "The weather is fine, off and on."


@pytest.mark.parametrize(
    "text",
    [
        "Mijn oma kan niets onthouden.",
        "Mijn oma kan dat niet onthouden.",
        "Ik kan dat niet onthouden, mijn geheugen is slecht.",
        "De camera kon dit niet opslaan.",
        "Meine Oma kann sich das nicht merken.",
        "Ich kann mir das nicht merken.",
        "Sie hat sich nichts gemerkt.",
        "Sie will das nicht aufschreiben.",
        "My grandma can't remember this.",
        "My phone did not save that.",
        "Il ne peut rien retenir, il a 90 ans.",
        "Mi abuela no puede recordar eso.",
        "Mia nonna non può ricordare questo.",
    ],
)
def test_who_else_keeps_nothing_asks_for_nothing(text: str) -> None:
    assert MARKERS.requested_change(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Paul hat Depressionen – bitte nicht merken",
        "Er hat Krebs das bitte nicht speichern",
        "Ich bin schwanger, das muss niemand wissen und bitte nicht speichern",
        "Mijn vrouw heeft kanker en dat niet onthouden",
        "stp ne note pas ça",
        "svp ne garde pas ça en mémoire",
        "Claude ne note pas ça",
        "j'ai le vih ne note pas ça",
        "amigo não guarda isso",
    ],
)
def test_a_wish_behind_what_it_is_about_is_heard(text: str) -> None:
    assert MARKERS.requested_change(text) is RecordChange.THIS


@pytest.mark.parametrize(
    "text",
    [
        "Dit niet onthouden: ik ben ziek.",
        "Kan je dat niet onthouden?",
        "Je moet dat niet onthouden.",
        "Das bitte nicht merken, ich bin krank.",
        "Könnten Sie das nicht speichern?",
        "Du sollst das nicht aufschreiben.",
        "S'il te plaît ne note pas ça.",
        "Surtout n'enregistre pas cela.",
        "Tu ne notes pas ça.",
        "Il ne faut pas noter ça.",
        "Non salvare questo, il prossimo messaggio è privato.",
        "Por favor não guarda isso.",
        "Não grava isto.",
    ],
)
def test_who_asks_the_assistant_is_off_the_record(text: str) -> None:
    assert MARKERS.requested_change(text) is RecordChange.THIS


@pytest.mark.parametrize(
    "text",
    [
        "The staging token is [redacted: token], use once, dont store",
        "No me guardes sitio, no voy.",
        "Bewaar geen plek voor mij, ik kom niet.",
        "They are family and stick by us no matter what, and we are not alone.",
        "If you don't remember it, I'll send it again.",
    ],
)
def test_a_masked_secret_a_seat_and_a_condition_of_something_else_ask_for_nothing(text: str) -> None:
    assert MARKERS.requested_change(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "I only tell you this if you don't keep it. I'm ill.",
        "This won't go into your notes, right? I'm ill.",
        "Non aggiungere questo alla tua memoria. Sono malato.",
        "Don't forget: this doesn't go into your archive. I'm ill.",
    ],
)
def test_a_condition_a_tag_and_other_verbs_beside_the_memory_ask_for_it(text: str) -> None:
    assert MARKERS.requested_change(text) is RecordChange.THIS
