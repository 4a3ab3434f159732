"""An HTTP/1.1 server whose limit has one planted cause: python3 server.py --port N --cause NAME"""

import argparse
import ctypes
import os
import queue
import resource
import signal
import socket
import socketserver
import sys
import tempfile
import threading
import time

CAUSES = [
    "none", "single-thread", "cpu-bound", "lock", "pause", "accept-backlog", "max-connections", "fd-limit",
    "slow-disk",
]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwell\n"


def burn(seconds):
    """Uses so much CPU time of this thread, however long that takes."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class OneWorker:
    """All requests' work in one thread."""

    def __init__(self):
        self.jobs = queue.SimpleQueue()
        threading.Thread(target=self.run, name="worker", daemon=True).start()

    def run(self):
        while True:
            done = self.jobs.get()
            burn(0.001)
            done.release()

    def work(self):
        done = threading.Lock()
        done.acquire()
        self.jobs.put(done)
        done.acquire()


class OneLock:
    """One lock around something that is waited for; the CPU idles."""

    def __init__(self):
        self.lock = threading.Lock()

    def work(self):
        with self.lock:
            time.sleep(0.005)


class Disk:
    """10 ms of writes to a log that must be on the disk, one request at a time. The file has no name."""

    def __init__(self):
        self.lock = threading.Lock()
        self.file = tempfile.TemporaryFile(buffering=0)
        self.written = 0

    def work(self):
        with self.lock:
            until = time.monotonic() + 0.01
            while time.monotonic() < until:
                if self.written == 64 << 20:
                    self.file.truncate(0)
                    self.written = 0
                os.pwrite(self.file.fileno(), bytes(4096), self.written)
                self.written += 4096
                os.fsync(self.file.fileno())


class Pause:
    """Every 2 s, when 100 requests or more have come since, one call into C that keeps the interpreter's lock for 300 ms."""

    def __init__(self):
        self.changes = 0
        started = time.perf_counter()
        sum(range(2_000_000))
        self.numbers = int(2_000_000 * 0.3 / (time.perf_counter() - started))
        threading.Thread(target=self.run, name="rebuild-index", daemon=True).start()

    def run(self):
        while True:
            time.sleep(2)
            if self.changes >= 100:
                sum(range(self.numbers))
            self.changes = 0

    def work(self):
        self.changes += 1


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while self.rfile.readline(8192):
            closes = False
            while (line := self.rfile.readline(8192)) not in (b"\r\n", b""):
                closes = closes or line.lower().replace(b" ", b"") == b"connection:close\r\n"
            self.server.work()
            self.wfile.write(ANSWER)
            if closes:
                return


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, port, cause):
        self.cause = cause
        self.connections = 0
        self.counting = threading.Lock()
        self.request_queue_size = 2 if cause == "accept-backlog" else 1024
        self.work = lambda: None
        if cause == "cpu-bound":
            self.work = lambda: burn(0.002)
        if cause in (planted := {"single-thread": OneWorker, "lock": OneLock, "slow-disk": Disk, "pause": Pause}):
            self.work = planted[cause]().work
        super().__init__(("127.0.0.1", port), Connection)

    def server_bind(self):
        if self.cause == "cpu-bound":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()

    def get_request(self):
        if self.cause == "accept-backlog":
            time.sleep(0.05)
        try:
            return super().get_request()
        except OSError:
            time.sleep(0.01)  # Too many open files: the connection stays in the queue and is tried again.
            raise

    def verify_request(self, request, client_address):
        with self.counting:
            if self.cause == "max-connections" and self.connections >= 40:
                return False
            self.connections += 1
            return True

    def process_request_thread(self, request, client_address):
        super().process_request_thread(request, client_address)
        with self.counting:
            self.connections -= 1

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def one_process_per_core():
    """The interpreter's lock allows one core per process. True in a child; the parent ends with its children."""
    parent, children = os.getpid(), []
    for _ in range(len(os.sched_getaffinity(0))):
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)
            return not children
        children.append(child)

    def end(*_):
        for child in children:
            os.kill(child, signal.SIGTERM)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    while True:
        signal.pause()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cause", choices=CAUSES, default="none")
    options = parser.parse_args()
    says = options.cause != "cpu-bound" or one_process_per_core()
    if options.cause == "fd-limit":
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    with Server(options.port, options.cause) as server:
        if says:
            print(f"listening on 127.0.0.1:{options.port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
