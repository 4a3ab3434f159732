package stepladder.inflight;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Lettuce: one connection, on which commands are pipelined. */
final class RedisStore implements Store {
    private final RedisClient client;
    private final StatefulRedisConnection<String, String> connection;
    private final RedisAsyncCommands<String, String> commands;
    private final InFlight.Member member;

    RedisStore(Plan plan) {
        RedisURI uri = RedisURI.create(plan.target());
        uri.setVerifyPeer(!plan.insecure());
        client = RedisClient.create(uri);
        SslOptions.Builder tls = SslOptions.builder().jdkSslProvider();
        if (plan.ca() != null) {
            tls.trustManager(new File(plan.ca()));
        }
        client.setOptions(ClientOptions.builder()
                .sslOptions(tls.build())
                // A command that finds no connection fails at once instead of waiting in a queue.
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .socketOptions(SocketOptions.builder()
                        .connectTimeout(Duration.ofMillis(CONNECT_TIMEOUT_MS))
                        .build())
                .build());
        connection = client.connect();
        commands = connection.async();
        Matcher version = Pattern.compile("redis_version:(\\S+)").matcher(connection.sync().info("server"));
        member = version.find() ? new InFlight.Member(version.group(1)) : null;
    }

    @Override
    public CompletionStage<?> get(String key) {
        return commands.get(key);
    }

    @Override
    public CompletionStage<?> set(String key, String value) {
        return commands.set(key, value);
    }

    @Override
    public CompletionStage<?> delete(String key) {
        return commands.del(key);
    }

    /** The connection broke after the command may have been sent. One that was rejected was never sent. */
    @Override
    public boolean isUnknown(Throwable error) {
        if (error instanceof RedisCommandExecutionException) {
            return false;
        }
        boolean wasRejected = String.valueOf(error.getMessage()).contains("Commands are rejected");
        return error instanceof RedisCommandTimeoutException
                || error instanceof IOException
                || error instanceof RedisException && !wasRejected;
    }

    @Override
    public InFlight.Client client() {
        Package lettuce = RedisClient.class.getPackage();
        // The build adds its commit after a slash.
        return new InFlight.Client("lettuce", String.valueOf(lettuce.getImplementationVersion()).split("/")[0]);
    }

    @Override
    public InFlight.Member member() {
        return member;
    }

    @Override
    public void close() {
        connection.close();
        client.shutdown(Duration.ZERO, Duration.ofSeconds(2));
    }
}
