from datetime import UTC, datetime, timedelta, timezone

from trilens.read.described import described, moment, one_line, part_title


def test_empty_fields_are_left_out_and_names_may_be_keywords() -> None:
    assert described(from_="Ada", to="", page=0, attachments=[], author=None) == {"from": "Ada", "page": 0}


def test_moments_compare_as_strings_whatever_their_zone() -> None:
    paris = timezone(timedelta(hours=1))
    assert moment(datetime(2024, 1, 1, 0, 30, tzinfo=paris)) == "2023-12-31T23:30:00Z"
    assert moment(datetime(2024, 1, 1, 0, 30)) == moment(datetime(2024, 1, 1, 0, 30, tzinfo=UTC)) == "2024-01-01T00:30:00Z"
    assert moment(None) == moment(datetime(1, 1, 1, tzinfo=paris)) == ""


def test_titles_of_parts_name_the_whole_once() -> None:
    assert part_title("Book", " One\nchapter ") == "Book: One chapter"
    assert part_title("Book", "Book") == part_title("Book", None) == part_title("", "Book") == "Book"
    assert one_line(None) == ""
