from threading import Thread

from trilens.store.fair_lock import FairLock


def test_threads_get_it_in_the_order_in_which_they_ask() -> None:
    lock, order = FairLock(), list[int]()

    def take(number: int) -> None:
        with lock:
            order.append(number)

    threads = [Thread(target=take, args=(number,)) for number in range(5)]
    with lock:
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while lock.waiting < number:
                pass
    with lock:  # after those that waited, although this thread asks at once
        assert order == list(range(5))
    for thread in threads:
        thread.join()
    assert lock.waiting == 0


def test_a_thread_that_has_it_gets_it_again() -> None:
    lock, order = FairLock(), list[str]()

    def take() -> None:
        with lock:
            order.append("other")

    thread = Thread(target=take)
    with lock:
        with lock:
            thread.start()
            while not lock.waiting:
                pass
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_only_one_thread_has_it() -> None:
    lock, count = FairLock(), 0

    def add() -> None:
        nonlocal count
        for _ in range(300):
            with lock:
                before = count
                with lock:
                    count = before + 1

    threads = [Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == 1_200
