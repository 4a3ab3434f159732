package stepladder.inflight;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.HazelcastClientNotActiveException;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.HazelcastInstanceNotActiveException;
import com.hazelcast.core.IndeterminateOperationState;
import com.hazelcast.core.MemberLeftException;
import com.hazelcast.core.OperationTimeoutException;
import com.hazelcast.instance.BuildInfoProvider;
import com.hazelcast.map.IMap;
import com.hazelcast.spi.exception.TargetDisconnectedException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** Hazelcast's own client for the JVM, as in the member's jar. Callbacks run in its response threads. */
final class HazelcastStore implements Store {
    private final HazelcastInstance instance;
    private final IMap<String, String> map;

    HazelcastStore(Plan plan) {
        if (plan.target().startsWith("hazelcasts:")) {
            throw new IllegalArgumentException("the open-source client has no TLS; Hazelcast sells it with its Enterprise edition");
        }
        String[] parts = plan.target().substring("hazelcast://".length()).split("/", 2);
        ClientConfig config = new ClientConfig();
        config.setClusterName(plan.cluster());
        config.setProperty("hazelcast.phone.home.enabled", "false");
        config.setProperty("hazelcast.client.invocation.timeout.seconds", String.valueOf(Math.max(1, plan.timeoutMs() / 1000)));
        config.getNetworkConfig().setAddresses(List.of(parts[0].split(","))).setConnectionTimeout(CONNECT_TIMEOUT_MS);
        config.getConnectionStrategyConfig().getConnectionRetryConfig().setClusterConnectTimeoutMillis(CONNECT_TIMEOUT_MS);
        instance = HazelcastClient.newHazelcastClient(config);
        map = instance.getMap(parts[1]);
    }

    @Override
    public CompletionStage<?> get(String key) {
        return map.getAsync(key);
    }

    @Override
    public CompletionStage<?> set(String key, String value) {
        return map.setAsync(key, value);
    }

    @Override
    public CompletionStage<?> delete(String key) {
        return map.deleteAsync(key);
    }

    /** The connection broke, or the client's own time ran out, after the operation may have been sent. */
    @Override
    public boolean isUnknown(Throwable error) {
        return error instanceof TargetDisconnectedException
                || error instanceof IOException
                || error instanceof OperationTimeoutException
                || error instanceof IndeterminateOperationState
                || error instanceof MemberLeftException
                || error instanceof HazelcastClientNotActiveException
                || error instanceof HazelcastInstanceNotActiveException;
    }

    @Override
    public InFlight.Client client() {
        return new InFlight.Client("hazelcast (Java)", BuildInfoProvider.getBuildInfo().getVersion());
    }

    @Override
    public InFlight.Member member() {
        return instance.getCluster().getMembers().stream()
                .findFirst()
                .map(each -> new InFlight.Member(each.getVersion().toString()))
                .orElse(null);
    }

    @Override
    public void close() {
        instance.shutdown();
    }
}
