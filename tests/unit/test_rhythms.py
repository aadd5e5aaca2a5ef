"""When jobs are due, and when failed sessions are: pure functions of an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.pipeline.background.due_times import MISFIRE_GRACE_S, JobClock, Rhythm
from afterword.store.limits import GROWTH, RetryPolicy

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
INSTANTS = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))
RHYTHMS = st.one_of(
    st.integers(1, 200_000).map(lambda seconds: Rhythm(every_s=float(seconds))),
    st.builds(
        Rhythm.parse,
        st.sampled_from(["* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 * * *", "0 9 * * mon", "15 2 29 2 *"]),
        st.sampled_from(["UTC", "Europe/Vienna", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"]),
    ),
)
DAYS = ("30 2 * * *", "0 0 * * *", "30 0 * * *", "59 23 * * *")
ZONES = ("Europe/Vienna", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana", "America/New_York")


@given(RHYTHMS, INSTANTS)
def test_every_process_sees_the_same_due_times(rhythm: Rhythm, now: datetime) -> None:
    """The last due time is not over, the next lies ahead, and none lies between them."""
    last, following = rhythm.recent_due_time(now), rhythm.next_due_time(now)
    assert following is not None
    assert following > now
    if last is not None:
        assert last <= now
        assert rhythm.next_due_time(last) == following
        assert rhythm.recent_due_time(following - timedelta(microseconds=1)) in (last, None)


def test_a_cron_job_that_is_over_an_hour_late_waits_for_its_next_time() -> None:
    nightly = Rhythm.parse("30 3 * * *")
    due_at = NOON.replace(hour=3, minute=30)
    late = timedelta(seconds=MISFIRE_GRACE_S)
    assert nightly.recent_due_time(due_at + late - timedelta(seconds=1)) == due_at
    assert nightly.recent_due_time(due_at + late + timedelta(seconds=1)) is None


def test_an_interval_is_never_too_late() -> None:
    """A daily job on a service that is deployed daily must still be done."""
    assert Rhythm.parse(86_400).recent_due_time(NOON) == NOON.replace(hour=0)


def test_cron_follows_its_time_zone() -> None:
    at = Rhythm.parse("30 3 * * *", "Europe/Vienna").next_due_time(NOON)
    assert at == datetime(2026, 3, 2, 2, 30, tzinfo=UTC)


def due_between(rhythm: Rhythm, first: datetime, last: datetime) -> list[datetime]:
    due: list[datetime] = []
    after: datetime | None = first
    while after is not None and (after := rhythm.next_due_time(after)) is not None and after <= last:
        due.append(after)
    return due


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", DAYS)
def test_a_job_of_every_day_is_due_once_on_each_day(text: str, zone: str) -> None:
    first = datetime(2026, 1, 1, 12, tzinfo=ZoneInfo(zone))
    due = due_between(Rhythm.parse(text, zone), first, first.replace(year=2028))
    local_days = [at.astimezone(ZoneInfo(zone)).date() for at in due]
    begins = local_days[0]
    assert begins - first.date() <= timedelta(days=1)
    assert local_days == [begins + timedelta(days=number) for number in range(730)]


def test_a_local_time_that_does_not_exist_is_due_at_the_next_that_does() -> None:
    rhythm = Rhythm.parse("30 2 * * *", "Europe/Vienna")
    assert rhythm.next_due_time(datetime(2026, 3, 28, 12, tzinfo=UTC)) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    assert rhythm.next_due_time(datetime(2026, 3, 29, 1, 0, tzinfo=UTC)) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)


def test_a_local_time_that_exists_twice_is_due_once() -> None:
    rhythm = Rhythm.parse("30 2 * * *", "Europe/Vienna")
    first, last = datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 10, 26, 12, tzinfo=UTC)
    assert due_between(rhythm, first, last) == [
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        datetime(2026, 10, 26, 1, 30, tzinfo=UTC),
    ]


def test_midnight_after_the_clocks_were_put_forward_is_not_skipped() -> None:
    rhythm = Rhythm.parse("0 0 * * *", "Europe/Vienna")
    assert rhythm.next_due_time(datetime(2026, 3, 29, 12, tzinfo=UTC)) == datetime(2026, 3, 29, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("weekdays", "expected"),
    [
        ("0", "Sun"),
        ("7", "Sun"),
        ("1-5", "Mon Tue Wed Thu Fri"),
        ("mon-fri", "Mon Tue Wed Thu Fri"),
        ("5-7", "Fri Sat Sun"),
        ("FRI-SUN", "Fri Sat Sun"),
        ("sat-1", "Mon Sat Sun"),
        ("*/2", "Tue Thu Sat Sun"),
        ("1,3/2", "Mon Wed Fri"),
        ("*", "Mon Tue Wed Thu Fri Sat Sun"),
    ],
)
def test_weekdays_are_numbered_as_in_cron(weekdays: str, expected: str) -> None:
    monday = datetime(2026, 3, 2, tzinfo=UTC)
    due = due_between(Rhythm.parse(f"0 3 * * {weekdays}"), monday, monday + timedelta(days=7))
    assert " ".join(f"{at:%a}" for at in due) == expected


def test_a_day_of_the_month_or_a_weekday_is_enough() -> None:
    due = due_between(Rhythm.parse("0 3 10 * 1"), NOON.replace(day=3), NOON.replace(day=17))
    assert [at.day for at in due] == [9, 10, 16]


@pytest.mark.parametrize(
    "text",
    ["", "0", "-5", "nan", "inf", "often", "* * *", "61 * * * *"]
    + [f"0 3 * * {weekday}" for weekday in ("8", "someday", "1-", "-1", "1--5", "1/0", "1/", "*/", ",", "²")],
)
def test_what_is_no_rhythm_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write seconds"):
        Rhythm.parse(text)


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="Vienna"):
        Rhythm.parse("30 3 * * *", "Nowhere/Land")


@given(st.floats(1, 10_000), INSTANTS)
def test_a_clock_that_runs_ahead_can_be_turned_back(speed: float, at: datetime) -> None:
    clock = JobClock(NOON, speed)
    there_and_back = clock.origin + (clock.to_real_time(at) - clock.origin) * speed
    assert abs(there_and_back - at) < timedelta(seconds=1)
    assert clock.to_real_seconds(speed) == pytest.approx(1)


@given(st.integers(1, 40), st.floats(1, 1000), st.floats(1, 100_000))
def test_pauses_grow_up_to_the_longest_and_end(tries: int, first_s: float, longest_s: float) -> None:
    retries = RetryPolicy(tries, first_s, longest_s)
    dates = [retries.next_try_at(attempt, NOON) for attempt in range(1, tries)]
    pauses = [(at - NOON).total_seconds() for at in dates if at is not None]
    assert len(pauses) == tries - 1
    assert pauses == sorted(pauses)
    assert all(pause <= longest_s + 1e-3 for pause in pauses)
    assert retries.next_try_at(tries, NOON) is None


def test_each_pause_is_four_times_the_last() -> None:
    pauses = [RetryPolicy().next_try_at(attempt, NOON) for attempt in (1, 2, 3)]
    assert pauses == [NOON + timedelta(seconds=60.0 * GROWTH**power) for power in range(3)]
