import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;

/** An HTTP/1.1 server whose limit has one planted cause: java Server --port N --cause NAME */
public class Server {
    private static final String CAUSES =
            "none|single-thread|cpu-bound|lock|pause|accept-backlog|max-connections|fd-limit|slow-disk|alloc";
    private static final byte[] BODY = "well\n".getBytes(StandardCharsets.US_ASCII);
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    interface Work {
        void run() throws Exception;
    }

    private static volatile int sink;

    /** Uses so much CPU time of this thread, however long that takes. */
    private static void burn(long enoughNs) {
        int word = 1;
        for (long until = THREADS.getCurrentThreadCpuTime() + enoughNs; THREADS.getCurrentThreadCpuTime() < until; ) {
            for (int step = 0; step < 5000; step++) {
                word = word * 31 + step;
            }
        }
        sink = word;
    }

    /** One lock around something that is waited for; the CPU idles. */
    private static Work oneLock() {
        ReentrantLock lock = new ReentrantLock();
        return () -> {
            lock.lock();
            try {
                Thread.sleep(5);
            } finally {
                lock.unlock();
            }
        };
    }

    /** 10 ms of writes that must be on the disk, one request at a time. The file has no name. */
    private static Work slowDisk() throws IOException {
        Path path = Files.createTempFile("causes-", null);
        FileChannel file = FileChannel.open(path, StandardOpenOption.WRITE);
        Files.delete(path);
        return () -> {
            synchronized (file) {
                for (long started = System.nanoTime(); System.nanoTime() - started < 10_000_000; ) {
                    if (file.size() >= 64 << 20) {
                        file.truncate(0);
                    }
                    file.write(ByteBuffer.allocate(4096), file.size());
                    file.force(true);
                }
            }
        };
    }

    private static final class Node {
        Node left;
        Node right;
    }

    private static Node[] graph;

    /**
     * Six million live objects that refer to each other all over a small heap, and 256 KB per request that live for 100
     * requests: long enough to grow old, so that only a collection of everything gets their memory back.
     */
    private static Work garbage() {
        Random random = new Random(1);
        graph = new Node[6_000_000];
        for (int at = 0; at < graph.length; at++) {
            graph[at] = new Node();
            graph[at].left = graph[random.nextInt(at + 1)];
            graph[at].right = graph[random.nextInt(at + 1)];
        }
        byte[][] sessions = new byte[100][];
        AtomicInteger next = new AtomicInteger();
        return () -> sessions[Math.floorMod(next.getAndIncrement(), sessions.length)] = new byte[256 << 10];
    }

    private static final ArrayDeque<Long> RECENT = new ArrayDeque<>();
    private static volatile int listed;

    /** Tells of every request of the last 3 s in each answer: with twice the load, each of them takes twice the memory. */
    private static void listRecent() {
        long now = System.nanoTime();
        StringBuilder text = new StringBuilder();
        synchronized (RECENT) {
            RECENT.addLast(now);
            while (now - RECENT.peekFirst() > 3_000_000_000L) {
                RECENT.removeFirst();
            }
            for (long at : RECENT) {
                text.append(String.format("a request %.1f ms ago\n", (now - at) / 1e6));
            }
        }
        listed = text.length();
    }

    private static Work planted(String cause) throws IOException {
        switch (cause) {
            case "single-thread":
                return () -> burn(1_000_000);
            case "cpu-bound":
                return () -> burn(2_000_000);
            case "lock":
                return oneLock();
            case "pause":
                return garbage();
            case "slow-disk":
                return slowDisk();
            case "alloc":
                return Server::listRecent;
            default:
                return () -> {};
        }
    }

    private static int threads(String cause) {
        switch (cause) {
            case "single-thread":
                return 1;
            case "cpu-bound":
                return Runtime.getRuntime().availableProcessors();
            default:
                return 64;
        }
    }

    public static void main(String[] arguments) throws Exception {
        int port = 0;
        String cause = "none";
        for (int at = 0; at + 1 < arguments.length; at += 2) {
            if (arguments[at].equals("--port")) {
                port = Integer.parseInt(arguments[at + 1]);
            } else if (arguments[at].equals("--cause")) {
                cause = arguments[at + 1];
            }
        }
        if (port == 0 || !("|" + CAUSES + "|").contains("|" + cause + "|")) {
            System.err.println("usage: java Server --port N --cause " + CAUSES);
            System.exit(2);
        }
        if (cause.equals("fd-limit")) {
            String limits = Files.readString(Path.of("/proc/self/limits"));
            if (!limits.matches("(?s).*open files +64 .*")) {
                System.err.println("Java cannot set its own limit: start it by prlimit --nofile=64 java …");
                System.exit(2);
            }
        }
        if (cause.equals("accept-backlog") || cause.equals("max-connections")) {
            acceptOurselves(port, cause);
            return;
        }
        // Without it each answer waits for an acknowledgement that the client delays.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        Work work = planted(cause);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.setExecutor(Executors.newFixedThreadPool(threads(cause)));
        server.createContext("/", exchange -> {
            try {
                work.run();
            } catch (Exception failed) {
                throw new IOException(failed);
            }
            exchange.getResponseHeaders().set("Content-Type", "text/plain");
            exchange.sendResponseHeaders(200, BODY.length);
            exchange.getResponseBody().write(BODY);
            exchange.close();
        });
        server.start();
        System.out.println("listening on 127.0.0.1:" + port);
    }

    /** The JDK's server accepts by itself; these two causes are in how it is accepted. One thread per connection. */
    private static void acceptOurselves(int port, String cause) throws Exception {
        boolean slowly = cause.equals("accept-backlog");
        ExecutorService pool = Executors.newCachedThreadPool();
        AtomicInteger open = new AtomicInteger();
        try (ServerSocket listener = new ServerSocket(port, slowly ? 2 : 1024, InetAddress.getByName("127.0.0.1"))) {
            System.out.println("listening on 127.0.0.1:" + port);
            while (true) {
                if (slowly) {
                    Thread.sleep(50);
                }
                Socket socket = listener.accept();
                if (!slowly && open.get() >= 40) {
                    socket.close();
                    continue;
                }
                open.incrementAndGet();
                pool.execute(() -> {
                    try (socket) {
                        answer(socket);
                    } catch (IOException gone) {
                        // The client left.
                    } finally {
                        open.decrementAndGet();
                    }
                });
            }
        }
    }

    private static void answer(Socket socket) throws IOException {
        socket.setTcpNoDelay(true);
        byte[] answer = ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + BODY.length + "\r\n\r\nwell\n")
                .getBytes(StandardCharsets.US_ASCII);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.ISO_8859_1));
        boolean closes = false;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            closes |= line.replace(" ", "").equalsIgnoreCase("connection:close");
            if (line.isEmpty()) {
                socket.getOutputStream().write(answer);
                if (closes) {
                    return;
                }
            }
        }
    }
}
