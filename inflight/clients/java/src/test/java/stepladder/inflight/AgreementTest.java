package stepladder.inflight;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** What all languages agree on: the files beside ../../check, which ../../expected.py and README.md stand for. */
class AgreementTest {
    private static JsonObject read(String name) throws IOException {
        // Maven runs tests in the folder of pom.xml.
        return JsonParser.parseString(Files.readString(Path.of("..", name))).getAsJsonObject();
    }

    @Test
    void theFakeGivesTheExpectedHistogramBucketByBucket() throws Exception {
        JsonObject expected = read("fake-histogram.json");
        long total = expected.getAsJsonObject("plan").get("total").getAsLong();
        long warmup = expected.getAsJsonObject("plan").get("warmup").getAsLong();
        Fake fake = new Fake(100, warmup, total);
        InFlight.End end = InFlight.of(fake::start)
                .clock(fake::clock)
                .totalOps(total)
                .warmupOps(warmup)
                .onLine(line -> {})
                .run();
        expected.getAsJsonObject("counts")
                .entrySet()
                .forEach(each -> assertEquals(each.getValue().getAsLong(), end.count(each.getKey()), each.getKey()));
        Histogram histogram = Histogram.decodeFromCompressedByteBuffer(
                ByteBuffer.wrap(Base64.getDecoder().decode(end.latency())), 0);
        Map<Long, Long> wanted = new HashMap<>();
        expected.getAsJsonArray("buckets").forEach(each -> wanted.put(
                each.getAsJsonArray().get(0).getAsLong(), each.getAsJsonArray().get(1).getAsLong()));
        Map<Long, Long> found = new HashMap<>();
        histogram.recordedValues().forEach(each -> found.put(
                histogram.lowestEquivalentValue(each.getValueIteratedTo()), each.getCountAtValueIteratedTo()));
        assertEquals(wanted, found);
    }

    private static Workload workload(String keys) throws Plan.BadPlan {
        return new Workload(
                Plan.read("{\"target\":\"null:\",\"op\":\"mix\",\"seed\":7,\"value_bytes\":70,\"keys\":" + keys + "}"));
    }

    @Test
    void keysValuesAndKindsAreThoseOfEveryLanguage() throws Exception {
        JsonObject expected = read("vectors.json");
        Workload uniform = workload("{\"pattern\":\"uniform\",\"count\":1000}");
        Workload zipf = workload("{\"pattern\":\"zipf\",\"count\":1000,\"theta\":0.99}");
        for (int i = 0; i < 200; i++) {
            assertEquals(
                    expected.getAsJsonArray("kinds").get(i).getAsString(), uniform.kind(i).name().toLowerCase());
            assertEquals(expected.getAsJsonArray("uniform_1000").get(i).getAsInt(), uniform.key(i));
            assertEquals(expected.getAsJsonArray("zipf_1000_0.99").get(i).getAsInt(), zipf.key(i));
        }
        Workload many = workload("{\"pattern\":\"uniform\",\"count\":1000000}");
        for (Map.Entry<String, JsonElement> each :
                expected.getAsJsonObject("values").entrySet()) {
            int key = Integer.parseInt(each.getKey().substring(1));
            assertEquals(each.getValue().getAsString(), many.value(key));
        }
    }

    @Test
    void plansAreReadOrRefusedWithEverythingThatIsWrong() throws Exception {
        JsonObject plans = read("plans.json");
        for (JsonElement each : plans.getAsJsonArray("good")) {
            JsonObject wanted = each.getAsJsonObject().getAsJsonObject("as_run");
            wanted.addProperty("variant", "callbacks");
            Plan plan = Plan.read(each.getAsJsonObject().get("plan").toString());
            assertEquals(
                    wanted, JsonParser.parseString(new Gson().toJson(plan.asRun())).getAsJsonObject());
        }
        for (JsonElement each : plans.getAsJsonArray("bad")) {
            String text = each.getAsJsonObject().get("plan").getAsString();
            String message =
                    assertThrows(Plan.BadPlan.class, () -> Plan.read(text), text).getMessage();
            assertEquals(each.getAsJsonObject().get("message").getAsString(), message);
        }
        assertEquals("semaphore", Plan.read("{\"target\":\"null:\",\"variant\":\"semaphore\"}").variant());
        String message = assertThrows(Plan.BadPlan.class, () -> Plan.read("{\"target\":\"null:\",\"variant\":\"x\"}"))
                .getMessage();
        assertEquals("\"variant\" must be callbacks or semaphore, got \"x\"", message);
    }

    @Test
    void aWrongValueOrLengthIsCountedAsWrongAndAMissingOneAsAMiss() throws Exception {
        Plan plan = Plan.read("{\"target\":\"null:\",\"op\":\"get\",\"total\":400,\"warmup\":0,\"value_bytes\":10,"
                + "\"keys\":{\"pattern\":\"uniform\",\"count\":4}}");
        Workload workload = new Workload(plan);
        Store right = new Store.Null(workload);
        Map<String, Object> planted = new HashMap<>();
        planted.put("k0", workload.value(0) + "x");
        planted.put("k1", "x".repeat(10));
        planted.put("k2", null);
        Store broken = (Store) Proxy.newProxyInstance(
                Store.class.getClassLoader(), new Class<?>[] {Store.class}, (proxy, method, arguments) -> {
                    boolean isPlanted = method.getName().equals("get") && planted.containsKey(arguments[0]);
                    return isPlanted
                            ? CompletableFuture.completedFuture(planted.get(arguments[0]))
                            : method.invoke(right, arguments);
                });
        long[] drawn = new long[4];
        for (int i = 0; i < 400; i++) {
            drawn[workload.key(i)]++;
        }
        Runner.Operations operations = new Runner.Operations(plan, broken, workload);
        InFlight.End end = InFlight.<Object>of(operations)
                .check(operations)
                .totalOps(400)
                .warmupOps(0)
                .onLine(line -> {})
                .run();
        long wrong = drawn[0] + drawn[1];
        assertEquals(drawn[3], end.count("hits"));
        assertEquals(drawn[2], end.count("misses"));
        assertEquals(wrong, end.count("wrong"));
        assertEquals(wrong, end.count("failed"));
        assertEquals(drawn[2] + drawn[3], end.count("ok"));
    }
}
