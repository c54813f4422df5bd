"""A reverse proxy between an engine and the catalog, which does to commits what networks and middle boxes do."""

import contextlib
import http.client
import json
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

IDEMPOTENCY_KEY = "idempotency-key"
# Headers of one connection, and those that http.client and http.server set themselves.
NOT_FORWARDED = {"connection", "content-length", "date", "host", "keep-alive", "server", "transfer-encoding"}
BOUND_S = 60


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass(frozen=True)
class Commit:
    """A request that adds a snapshot: the key that the client sent with it, if any, and every answer of the catalog.

    None stands for an answer that never came. The times are those of `time.monotonic`, in seconds.
    """

    path: str
    key: str | None
    body: bytes
    answers: list[Answer | None]
    began_s: float
    ended_s: float

    @property
    def statuses(self):
        return [answer and answer.status for answer in self.answers]

    @property
    def asserted(self):
        """The snapshot that the request wants to find on its branch; None where it wants to find no branch."""
        requirements = json.loads(self.body)["requirements"]
        asserted = (need for need in requirements if need["type"] == "assert-ref-snapshot-id")
        return next(asserted, {}).get("snapshot-id")


def once(send):
    return [send()]


def one_after_the_other(send):
    return [send(), send()]


def both_at_once(send):
    with ThreadPoolExecutor(2) as pool:
        return [sent.result() for sent in [pool.submit(send), pool.submit(send)]]


def unanswered(send):
    """The catalog has answered, and the client never hears of it."""
    return [send(), None]


def worst(answers):
    """None, which is no answer, is worse than any."""
    return None if None in answers else max(reversed(answers), key=lambda answer: answer.status)


@dataclass
class Proxy:
    """A running proxy. Where it forwards one request more than once, the client gets the worst of the answers."""

    target: str
    without: frozenset[str] = frozenset()
    # Whether clients are told of idempotency keys. One that is not sends a commit once, as all old ones do.
    keys: bool = True
    commits: list[Commit] = field(default_factory=list)
    faults: list = field(default_factory=list)
    uri: str = ""

    def to_next_commit(self, fault):
        """The next commit is forwarded by `fault`, which is given what forwards it once; later ones are not touched."""
        self.faults.append(fault)

    def repeated(self):
        """The commits that were forwarded more than once."""
        return [commit for commit in list(self.commits) if len(commit.answers) > 1]

    def forward(self, method, path, headers, body):
        """The answer for the client, or None where it is to get none."""
        kept = {name: value for name, value in headers if name.lower() not in NOT_FORWARDED | self.without}
        host = urllib.parse.urlsplit(self.target).netloc

        def send():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return ask(host, method, path, kept, body)

        if not self.keys and urllib.parse.urlsplit(path).path.endswith("/v1/config"):
            return without_keys(send())
        if method != "POST" or b'"add-snapshot"' not in body:
            return send()
        began_s = time.monotonic()
        answers = self.faults.pop(0)(send) if self.faults else once(send)
        key = next((value for name, value in headers if name.lower() == IDEMPOTENCY_KEY), None)
        self.commits.append(Commit(path, key, body, answers, began_s, time.monotonic()))
        return worst(answers)


def without_keys(answer):
    """The catalog's configuration, as one that knows no idempotency keys tells it."""
    if answer is None or answer.status != 200:
        return answer
    config = json.loads(answer.body)
    config.pop("idempotency-key-lifetime", None)
    return Answer(answer.status, answer.headers, json.dumps(config).encode())


def ask(host, method, path, headers, body):
    with contextlib.closing(http.client.HTTPConnection(host, timeout=BOUND_S)) as connection:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in NOT_FORWARDED]
        return Answer(answer.status, kept, answer.read())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One write per answer: headers and body written apart would wait for an acknowledgement in between.
    wbufsize = -1

    def handle_any(self):
        answer = self.server.proxy.forward(self.command, self.path, self.headers.items(), self.body())
        if answer is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        bodiless = self.command == "HEAD" or answer.status in (204, 304)
        if not bodiless:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if not bodiless:
            self.wfile.write(answer.body)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self.chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def chunks(self):
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def log_message(self, *_):
        pass


class Listener(ThreadingHTTPServer):
    # As many as any suite has clients that connect at once.
    request_queue_size = 128


@contextlib.contextmanager
def running(target, without=(), keys=True):
    """A proxy before the catalog at `target` that leaves out the request headers `without`.

    Without `keys` its clients hear nothing of idempotency keys.
    """
    with Listener(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        listener.proxy = Proxy(target, frozenset(without), keys, uri=f"http://127.0.0.1:{listener.server_port}")
        serving = threading.Thread(target=listener.serve_forever, args=(0.1,), daemon=True)
        serving.start()
        try:
            yield listener.proxy
        finally:
            listener.shutdown()
