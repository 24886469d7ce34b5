import pytest

from trilens.read.dates import iso_date


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024-01-31", "2024-01-31"),
        ("2024-1-5", "2024-01-05"),
        ("2024/01/31", "2024-01-31"),
        ("31.1.2024", "2024-01-31"),
        ("31-Jan-2024", "2024-01-31"),
        ("31 January 2024", "2024-01-31"),
        ("Jan 31, 2024", "2024-01-31"),
        ("2024-01-31 12:00", "2024-01-31T12:00:00Z"),
        ("2024-01-31T00:30:00+01:00", "2024-01-30T23:30:00Z"),
        ("31.1.2024 2:05 PM", "2024-01-31T14:05:00Z"),
        ("31.1.2024 12:05am", "2024-01-31T00:05:00Z"),
        ("Wed, 31 Jan 2024 12:00:00 -0130", "2024-01-31T13:30:00Z"),
    ],
)
def test_dates_of_every_form_compare_as_text(text: str, date: str) -> None:
    assert iso_date(text, month_first=False) == iso_date(text, month_first=True) == date


def test_the_order_decides_on_numbers_between_slashes() -> None:
    assert [iso_date("3/4/2024", month_first) for month_first in (False, True)] == ["2024-04-03", "2024-03-04"]
    assert [iso_date("31/1/2024 9:00", month_first) for month_first in (False, True)] == ["2024-01-31T09:00:00Z", None]


@pytest.mark.parametrize(
    "text",
    [
        *("", "2024", "2024-01", "20240131", "1.2.3", "31.1.24", "2024-02-30", "2024-1/31", "31 Foo 2024", "31 Wed 2024"),
        *("2024-01-31T12", "2024-01-31 25:00", "2024-01-31 13:00 PM", "2024-01-31 12:00:00.5", "2024-01-31 and later"),
        *("0001-01-01 00:00 +0500", "2024-01-31 12:00 +99:00", "٢٠٢٤-01-31"),
    ],
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert iso_date(text, month_first=False) is iso_date(text, month_first=True) is None
