"""A server that is killed and comes back: on the same address, with the same database and the same files."""

import contextlib
import signal

import process
import server


class Node:
    def __init__(self, binary, folder, database_url, log):
        address = f"127.0.0.1:{process.free_port()}"
        self.uri = f"http://{address}"
        self.argv = [binary, "serve", "--listen", address, "--data-dir", folder, "--database-url", database_url]
        self.log = log
        self.kills = 0

    def begin(self):
        self.child = process.start(self.argv, self.log, env=server.clean_environment())
        server.wait_until_ready(self.uri, self.child, self.log)

    def kill(self):
        """Ends it without a word, whatever it is doing, and starts it again."""
        process.stop(self.child, signal.SIGKILL)
        self.kills += 1
        self.begin()


@contextlib.contextmanager
def running(binary, folder, database_url, log_file):
    """A server for the length of the block; it must stop by itself in the end, and tell of no error and no panic."""
    with open(log_file, "w") as log:
        node = Node(binary, folder, database_url, log)
        node.begin()
        try:
            yield node
        finally:
            status = process.stop(node.child)
    assert status == 0, f"the server ended with status {status}: see {log_file.name}"
    server.refuse_trouble(log_file, expected=())
