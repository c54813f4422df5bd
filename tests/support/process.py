"""Child processes with a time bound and a log, all of them ended when the run ends."""

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

_alive: set[subprocess.Popen] = set()
_lock = threading.Lock()


class Failed(Exception):
    """A step that did not come out as it must; the message is for the table of results."""


def start(argv, log, **options):
    """Starts `argv` in a process group of its own, its output appended to the open file `log`."""
    child = subprocess.Popen(
        [str(word) for word in argv],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    )
    with _lock:
        _alive.add(child)
    return child


def stop(child, first=signal.SIGTERM, grace_s=20):
    """Asks the child to stop, insists after `grace_s`, and returns its exit status."""
    try:
        if child.poll() is None:
            child.send_signal(first)
            child.wait(grace_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    with _lock:
        _alive.discard(child)
    return child.returncode


def wait_until_ready(child, what, is_ready, bound_s, log_name):
    """Waits until `is_ready()` holds. Raises `Failed` where the child ends before that, or after `bound_s`."""
    end = time.monotonic() + bound_s
    while not is_ready():
        if child.poll() is not None:
            raise Failed(f"{what} did not start: see {log_name}")
        if time.monotonic() > end:
            raise Failed(f"{what} was not ready after {bound_s} s: see {log_name}")
        time.sleep(0.1)


def answers(url):
    """Whether whoever listens there says 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def run(argv, log, bound_s, **options):
    """Runs `argv` to its end. Raises `Failed` on a non-zero status or after `bound_s`."""
    log.write(f"$ {' '.join(str(word).partition(chr(10))[0] for word in argv)}\n")
    log.flush()
    child = start(argv, log, **options)
    try:
        status = child.wait(bound_s)
    except subprocess.TimeoutExpired:
        raise Failed(f"{name_of(argv)} still ran after {bound_s} s") from None
    finally:
        end_group(child)
    if status != 0:
        raise Failed(f"{name_of(argv)} ended with status {status}")


def end_group(child):
    """Ends whatever is left of the child's process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    with _lock:
        _alive.discard(child)


def name_of(argv):
    """The program and the first word that is no option: `cargo clippy`, `python pytest`."""
    words = [os.path.basename(str(word)) for word in argv]
    return " ".join(words[:1] + [word for word in words[1:] if not word.startswith("-")][:1])


def free_port():
    """A loopback port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_free(port):
    """Whether nothing listens on this loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@atexit.register
def end_all():
    with _lock:
        left = list(_alive)
    for child in left:
        end_group(child)
