"""Facts that change, what hangs on them, and what does not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from afterword.facts.assertions import OWNER, Assertion, Authority, Kind, Relation, SpeechAct, Verdict
from afterword.facts.dependents import Dependent, dependents
from afterword.facts.scopes import Scope
from afterword.facts.validity.timeline import timeline

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY = START + timedelta(days=300)
CHANGED_ON = 50
PREFERENCE, DECISION = Kind.PREFERENCE, Kind.DECISION


def day(number: int) -> datetime:
    return START + timedelta(days=number)


@dataclass(frozen=True)
class Said:
    """One statement: subject, attribute, value, sentence."""

    subject: str
    attribute: str
    value: str
    statement: str
    kind: Kind = Kind.ENTITY

    def on(self, number: int, name: str = "", valid_from: datetime | None = None) -> Assertion:
        return Assertion(
            id=name or self.statement,
            scope=Scope.user("lena"),
            session_id=f"day {number}",
            act=SpeechAct.STATE,
            kind=self.kind,
            subject=self.subject,
            attribute=self.attribute,
            value=self.value,
            statement=self.statement,
            speaker="user",
            authority=Authority.STATED,
            said_at=day(number),
            evidence=(),
            valid_from=valid_from,
        )


@dataclass(frozen=True)
class Case:
    """A fact, what took its place, what should be pointed at then, and what should not."""

    name: str
    old: Said
    new: Said
    flagged: tuple[Said, ...] = ()
    spared: tuple[Said, ...] = ()
    relation: Relation = Relation.CHANGES

    def found(self) -> list[Dependent]:
        others = [one.on(number) for number, one in enumerate([*self.flagged, *self.spared], 2)]
        verdict = Verdict("old", "new", self.relation, "", "rules-1")
        said = [self.old.on(1, "old"), *others, self.new.on(CHANGED_ON, "new")]
        return dependents(timeline(said, [verdict], TODAY))


def mine(attribute: str, value: str, statement: str, kind: Kind = Kind.ENTITY) -> Said:
    return Said(OWNER, attribute, value, statement, kind)


WITH = [
    Case(
        "a move to another city",
        mine("home", "Graz", "The user lives in Graz."),
        mine("home", "Linz", "The user lives in Linz."),
        flagged=(
            mine("commute", "20 minutes by tram", "The user's commute takes 20 minutes by tram."),
            mine("gym", "FitHaus", "The user goes to the gym FitHaus on Tuesdays."),
            mine("dentist", "Dr Moser", "The user's dentist is Dr Moser."),
            mine("choir", "Grazer Singkreis", "The user sings in a choir in Graz."),
            Said("user's son", "kindergarten", "Sonnenblume", "The user's son goes to the kindergarten Sonnenblume."),
            Said("Herr Wolf", "relation", "neighbour", "Herr Wolf is the user's neighbour."),
        ),
        spared=(
            mine("birthplace", "Graz", "The user was born in Graz."),
            mine("language", "Dutch", "The user speaks Dutch."),
            Said("Mara", "home", "Graz", "Mara lives in Graz."),
            Said("Mara", "gym", "Kraftwerk", "Mara goes to the gym Kraftwerk."),
        ),
    ),
    Case(
        "another flat in the same city",
        mine("address", "Lindengasse 3", "The user lives at Lindengasse 3."),
        mine("address", "Hafenweg 8", "The user lives at Hafenweg 8."),
        flagged=(
            mine("parking", "a permit for zone 4", "The user has a parking permit for zone 4."),
            mine("rent", "950 euros", "The user pays a rent of 950 euros."),
            mine("power", "Sonnstrom", "The user has an electricity contract with Sonnstrom."),
            mine("parcels", "Lindengasse 3", "Parcels for the user go to Lindengasse 3 after six.", PREFERENCE),
        ),
        spared=(
            mine("allergy", "nuts", "The user is allergic to nuts."),
            mine("email", "address", "The user's email address is at Fastmail."),
        ),
    ),
    Case(
        "a new employer",
        mine("employer", "Brandt Logistics", "The user works at Brandt Logistics."),
        mine("employer", "Nordhavn", "The user works at Nordhavn."),
        flagged=(
            Said("Petra", "relation", "boss", "Petra is the user's boss."),
            mine("salary_day", "25th", "The user's salary comes on the 25th."),
            mine("shift", "nights", "The user has night shifts in even weeks."),
            mine("route", "bike", "The user prefers cycling to work.", PREFERENCE),
            mine("badge_place", "locker", "The user keeps the Brandt Logistics badge in a locker."),
        ),
        spared=(
            mine("desk", "standing", "The user has a standing desk in the home office."),
            Said("user's wife", "boss", "Karin", "The boss of the user's wife is Karin."),
            Said("Petra", "employer", "Brandt Logistics", "Petra works at Brandt Logistics."),
        ),
    ),
    Case(
        "another diet",
        mine("diet", "vegetarian", "The user is vegetarian.", PREFERENCE),
        mine("diet", "vegan", "The user is vegan.", PREFERENCE),
        flagged=(
            mine("recipes", "with eggs and cheese", "The user wants recipes with eggs and cheese.", PREFERENCE),
            mine("restaurant", "Trattoria Lupo", "The user's favourite restaurant is Trattoria Lupo.", PREFERENCE),
            mine("meals", "Sundays", "The user writes the menu for the week on Sundays."),
        ),
        spared=(
            mine("recipe_units", "grams", "The user wants recipes in grams.", PREFERENCE),
            mine("allergy", "lupins", "The user is allergic to lupins."),
            mine("seat", "window", "The user prefers window seats.", PREFERENCE),
        ),
    ),
    Case(
        "the allergy of a child turns out to be over",
        Said("user's daughter", "allergy", "eggs", "The user's daughter is allergic to eggs."),
        Said("user's daughter", "allergy", "none", "The user's daughter has no allergy."),
        flagged=(mine("lunch", "no mayonnaise", "The user packs lunch boxes without mayonnaise."),),
        spared=(mine("hobby", "pottery", "The user makes pottery."),),
    ),
    Case(
        "another car",
        mine("car", "a diesel Passat", "The user drives a diesel Passat."),
        mine("car", "an electric Zoe", "The user drives an electric Zoe."),
        flagged=(
            mine("insurance", "Tarrant", "The user's car insurance is with Tarrant."),
            mine("tyres", "winter, in the cellar", "The winter tyres lie in the user's cellar."),
            mine("fuel", "Jet at the ring road", "The user fills up with petrol at Jet, since fuel is cheap there."),
        ),
        spared=(
            mine("insurance", "Helvia", "The user's health insurance is Helvia."),
            mine("charger", "USB-C", "The user's laptop charger is USB-C."),
            Said("Ines", "insurance", "Baloo", "Ines has car insurance with Baloo."),
        ),
    ),
    Case(
        "a trip on other days",
        mine("trip_dates", "3 to 7 May", "The user's trip to Lisbon is from 3 to 7 May."),
        mine("trip_dates", "10 to 14 May", "The user's trip to Lisbon is from 10 to 14 May."),
        flagged=(
            mine("hotel", "Casa Azul", "The user has booked the hotel Casa Azul in Lisbon."),
            mine("reminder", "1 May", "The user wants to be reminded on 1 May to pack for Lisbon.", PREFERENCE),
        ),
        spared=(
            mine("hotel", "Fjordblick", "The user has booked the hotel Fjordblick in Bergen for August."),
            mine("airline", "aisle", "The user prefers aisle seats on flights.", PREFERENCE),
        ),
    ),
    Case(
        "another database in a project",
        Said("tollbooth", "database", "MySQL", "The tollbooth project uses MySQL.", DECISION),
        Said("tollbooth", "database", "PostgreSQL", "The tollbooth project uses PostgreSQL.", DECISION),
        flagged=(
            Said("tollbooth", "driver", "aiomysql", "tollbooth connects with the driver aiomysql.", DECISION),
            Said("tollbooth", "backups", "nightly", "tollbooth makes nightly backups with mysqldump."),
            Said("Ravi", "task", "MySQL upgrade", "Ravi does the MySQL upgrade of tollbooth in June."),
        ),
        spared=(
            Said("tollbooth", "licence", "MIT", "tollbooth is under the MIT licence.", DECISION),
            Said("ledger", "backups", "weekly", "ledger makes weekly backups."),
            mine("skills", "MySQL", "The user knows MySQL well."),
        ),
    ),
    Case(
        "a child at another school",
        Said("user's son", "school", "Elmgrove", "The user's son goes to Elmgrove Primary."),
        Said("user's son", "school", "Hillside", "The user's son goes to Hillside Middle School."),
        flagged=(
            mine("school_run", "7:40", "The user does the school run at 7:40."),
            Said("user's son", "timetable", "swimming on Mondays", "The timetable has swimming on Mondays."),
            Said("user's son", "newsletter", "by post", "The user's son brings the Elmgrove newsletter home."),
        ),
        spared=(mine("bedtime", "nine", "The user goes to bed at nine."),),
    ),
    Case(
        "another phone provider",
        mine("phone_provider", "Telia", "The user's phone provider is Telia."),
        mine("phone_provider", "Halebop", "The user's phone provider is Halebop."),
        flagged=(
            mine("data", "20 GB", "The user's data plan has 20 GB."),
            mine("contract_end", "December", "The user's contract ends in December."),
        ),
        spared=(
            mine("work_contract", "May", "The user's work contract ends in May."),
            mine("plan", "half marathon", "The user plans to run a half marathon."),
        ),
    ),
]


WITHOUT = [
    Case(
        "a move, and what goes along",
        mine("home", "Utrecht", "The user lives in Utrecht."),
        mine("home", "Ghent", "The user lives in Ghent."),
        spared=(
            mine("language", "Dutch", "The user speaks Dutch."),
            mine("allergy", "nuts", "The user is allergic to nuts."),
            mine("seat", "window", "The user prefers window seats.", PREFERENCE),
            mine("job", "doctor", "The user is a doctor."),
            mine("studies", "Utrecht", "The user studied law in Utrecht."),
        ),
    ),
    Case(
        "a new job, and what has nothing to do with it",
        mine("job", "teacher", "The user works as a teacher."),
        mine("job", "librarian", "The user works as a librarian."),
        spared=(
            mine("tool", "LibreOffice", "The user writes letters in LibreOffice.", PREFERENCE),
            Said("Piet", "job", "teacher", "Piet is a teacher."),
            mine("dog", "Bo", "The user's dog is called Bo."),
            mine("passwords", "Vaultic", "The user keeps passwords in the password manager Vaultic."),
        ),
    ),
    Case(
        "another drink",
        mine("drink", "coffee", "The user drinks coffee in the morning.", PREFERENCE),
        mine("drink", "green tea", "The user drinks green tea in the morning.", PREFERENCE),
        spared=(
            mine("running", "mornings", "The user runs in the morning.", PREFERENCE),
            mine("cake", "plum", "The user likes plum cake.", PREFERENCE),
            mine("table", "coffee table of oak", "The user bought a coffee table of oak."),
        ),
    ),
    Case(
        "another seat",
        mine("seat", "window", "The user prefers a window seat.", PREFERENCE),
        mine("seat", "aisle", "The user prefers an aisle seat.", PREFERENCE),
        spared=(
            mine("kitchen", "window to the yard", "The kitchen of the user has a window to the yard."),
            mine("airline", "morning flights", "The user prefers morning flights.", PREFERENCE),
        ),
    ),
    Case(
        "a meeting on another weekday",
        mine("team_meeting", "Monday", "The user's team meets on Monday."),
        mine("team_meeting", "Thursday", "The user's team meets on Thursday."),
        spared=(
            mine("swimming", "Monday", "The user swims on Mondays."),
            mine("bins", "Monday evening", "The bins are put out on Monday evening."),
        ),
    ),
    Case(
        "the dates of one trip, and what is booked for another",
        Said("Bergen trip", "dates", "1 to 5 August", "The Bergen trip is from 1 to 5 August."),
        Said("Bergen trip", "dates", "8 to 12 August", "The Bergen trip is from 8 to 12 August."),
        spared=(
            Said("Porto trip", "hotel", "Casa Rio", "The hotel Casa Rio is booked for the Porto trip."),
            mine("tax_deadline", "31 August", "The user's tax return is due on 31 August."),
            mine("birthday", "3 August", "The user's birthday is on 3 August."),
        ),
    ),
    Case(
        "somebody else moves",
        Said("user's sister", "home", "Lyon", "The user's sister lives in Lyon."),
        Said("user's sister", "home", "Nice", "The user's sister lives in Nice."),
        spared=(
            mine("commute", "by ferry", "The user's commute is by ferry."),
            mine("holiday", "Lyon", "The user spends every autumn in Lyon."),
            Said("Paul", "home", "Lyon", "Paul lives in Lyon."),
        ),
    ),
    Case(
        "the language of one project",
        Said("quillfmt", "language", "Python", "quillfmt is written in Python.", DECISION),
        Said("quillfmt", "language", "Rust", "quillfmt is written in Rust.", DECISION),
        spared=(
            mine("skills", "Python", "The user teaches Python on Fridays."),
            Said("inkstand", "linter", "ruff", "inkstand uses the linter ruff.", DECISION),
            Said("quillfmt", "release_day", "Tuesday", "quillfmt is released on a Tuesday.", DECISION),
        ),
    ),
    Case(
        "a home told more exactly has not changed",
        mine("home", "Austria", "The user lives in Austria."),
        mine("home", "Graz, Austria", "The user lives in Graz, Austria."),
        spared=(
            mine("commute", "by tram", "The user's commute is by tram."),
            mine("gym", "FitHaus", "The user's gym is FitHaus."),
        ),
        relation=Relation.NARROWS,
    ),
    Case(
        "a home that was wrong from the start has not changed",
        mine("home", "Linz", "The user lives in Linz."),
        mine("home", "Lienz", "The user lives in Lienz."),
        spared=(mine("commute", "by bus", "The user's commute is by bus."),),
        relation=Relation.CORRECTS,
    ),
]
