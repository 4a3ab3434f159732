package stepladder.inflight;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** What a runner can benchmark: one client library, connected. */
interface Store extends AutoCloseable {
    int CONNECT_TIMEOUT_MS = 10_000;

    /** Completes with null for a key that is not there. */
    CompletionStage<?> get(String key);

    CompletionStage<?> set(String key, String value);

    CompletionStage<?> delete(String key);

    /** Whether the error leaves it open what became of an operation that was sent. */
    boolean isUnknown(Throwable error);

    InFlight.Client client();

    /** Null if the client does not know. */
    InFlight.Member member();

    @Override
    void close();

    static Store connect(Plan plan) {
        return plan.target().startsWith("hazelcast") ? new HazelcastStore(plan) : new RedisStore(plan);
    }

    /** Answers at once. Values are copies, so that checking one compares its bytes as it does with a real store. */
    final class Null implements Store {
        private final Map<String, CompletableFuture<String>> copies = new HashMap<>();
        private final CompletableFuture<String> nothing = CompletableFuture.completedFuture(null);

        Null(Workload workload) {
            Map<String, CompletableFuture<String>> made = new HashMap<>();
            for (int key = 0; key < workload.keyCount(); key++) {
                copies.put(
                        workload.name(key),
                        made.computeIfAbsent(
                                workload.value(key),
                                value -> CompletableFuture.completedFuture(new String(value.toCharArray()))));
            }
        }

        @Override
        public CompletionStage<?> get(String key) {
            return copies.getOrDefault(key, nothing);
        }

        @Override
        public CompletionStage<?> set(String key, String value) {
            return nothing;
        }

        @Override
        public CompletionStage<?> delete(String key) {
            return nothing;
        }

        @Override
        public boolean isUnknown(Throwable error) {
            return false;
        }

        @Override
        public InFlight.Client client() {
            return new InFlight.Client("null", "1");
        }

        @Override
        public InFlight.Member member() {
            return null;
        }

        @Override
        public void close() {}
    }
}
