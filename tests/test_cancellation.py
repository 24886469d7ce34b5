from threading import Thread

import pytest

from trilens.cancellation import is_unwanted, require_wanted, stop_when
from trilens.errors import Stopped


def test_work_is_wanted_unless_somebody_says_otherwise() -> None:
    require_wanted()
    with stop_when(lambda: True):
        assert is_unwanted()
        with stop_when(lambda: False):
            require_wanted()
        with pytest.raises(Stopped) as stopped:
            require_wanted()
        assert "\n" not in str(stopped.value)
    assert not is_unwanted()


def test_other_threads_are_not_concerned() -> None:
    seen: list[bool] = []
    with stop_when(lambda: True):
        thread = Thread(target=lambda: seen.append(is_unwanted()))
        thread.start()
        thread.join()
    assert seen == [False]
