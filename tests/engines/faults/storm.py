"""What happens to the commits of a stream: the server dies around one of them, or its answer is lost."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import proxy

# A kill amid a commit comes after one of these: they cover what a commit takes.
AMID_S = (0, 0.002, 0.005, 0.01, 0.02, 0.05)


def over(node, kills, answers, calm):
    """Faults for a proxy: that many kills of the server, each in another moment, and that many lost answers.

    Between two of them `calm` commits go through untouched.
    """
    moments = itertools.cycle(kinds_of_kill(node))
    kills, lost = [next(moments) for _ in range(kills)], [proxy.unanswered] * answers
    pairs = itertools.zip_longest(kills, lost)
    troubles = [trouble for pair in pairs for trouble in pair if trouble]
    return [fault for trouble in troubles for fault in (*[proxy.once] * calm, trouble)]


def kinds_of_kill(node):
    yield killed_after(node)
    for after_s in AMID_S:
        yield killed_amid(node, after_s)
    yield killed_before(node)


def killed_before(node):
    def fault(_):
        node.kill()
        return [None]

    return fault


def killed_amid(node, after_s):
    def fault(send):
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(send)
            time.sleep(after_s)
            node.kill()
            return [sent.result(), None]

    return fault


def killed_after(node):
    def fault(send):
        answer = send()
        node.kill()
        return [answer, None]

    return fault
