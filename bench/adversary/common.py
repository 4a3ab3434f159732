"""What the scripts of this folder share: the reference servers as processes, and whether they serve."""
import os, re, socket, subprocess, time

HERE = os.path.dirname(os.path.abspath(__file__))
STEPLADDER = os.path.abspath(os.environ.get("STEPLADDER") or f"{HERE}/../../target/release/stepladder")

UPGRADE = (b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def start(server, scratch, options=()):
    """The process of a server and its URL."""
    said = open(f"{scratch}/{server}.out", "w+")
    process = subprocess.Popen([STEPLADDER, "serve", server, *options, "--listen", "127.0.0.1:0"], stdout=said, stderr=subprocess.STDOUT)
    for _ in range(100):
        said.seek(0)
        if found := re.search(r"[a-z]+://127\.0\.0\.1:\d+", said.read()):
            return process, found[0]
        time.sleep(0.1)
    process.kill()
    raise SystemExit(f"bench/adversary: serve {server} said no address within 10 s; see what it says by itself")


def serves(dialect, address):
    """An honest client gets its answer within 10 s."""
    asks, wants = {"http": (get("/"), b"HTTP/1.1 "), "websocket": (UPGRADE, b"HTTP/1.1 101"), "lines": (b"/who\n", b"*"),
                   "redis": (b"PING\r\n", b"+PONG")}[dialect]
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            with socket.create_connection(address, 2) as client:
                client.sendall(asks)
                if client.recv(4096).startswith(wants):
                    return True
        except OSError:
            pass
        time.sleep(0.2)
    return False


def memory_mb(pid, what="VmRSS"):
    """Resident memory of a process, MB of 2**20 bytes; its highest with VmHWM."""
    return int(re.search(rf"{what}:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) / 1024


def written(value):
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
