package stepladder.inflight;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The plan: one JSON object that says what a runner does. Everything wrong with it is said at once. */
record Plan(
        String target,
        String op,
        int valueBytes,
        long total,
        long warmup,
        /** {@link InFlight#UNLIMITED} for "unlimited". */
        int inFlight,
        String pattern,
        int keyCount,
        double theta,
        long seed,
        String cluster,
        long timeoutMs,
        long memoryCapBytes,
        /** Over TLS: a PEM file with authorities to trust; null for the usual ones. */
        String ca,
        /** Over TLS: any certificate is accepted. */
        boolean insecure,
        String variant) {

    /** Names every mistake. */
    static final class BadPlan extends Exception {
        private static final long serialVersionUID = 1;

        BadPlan(String message) {
            super(message);
        }
    }

    private static final Gson GSON =
            new GsonBuilder().disableHtmlEscaping().serializeNulls().setStrictness(Strictness.STRICT).create();
    private static final Pattern TARGETS = Pattern.compile(
            "hazelcasts?://[^/,]+:\\d+(,[^/,]+:\\d+)*/.+|rediss?://(\\[[^\\]]+\\]|[^/:,]+):\\d+(/\\d+)?|null:|fake:");
    private static final List<String> KEYS_OF_PLAN = List.of(
            "target", "op", "value_bytes", "total", "warmup", "in_flight", "keys", "seed", "cluster", "timeout_ms",
            "memory_cap_bytes", "ca", "insecure", "variant");
    private static final List<String> KEYS_OF_KEYS = List.of("pattern", "count", "theta");

    boolean unlimited() {
        return inFlight == InFlight.UNLIMITED;
    }

    /** Reads a plan and fills in the defaults. */
    static Plan read(String text) throws BadPlan {
        JsonElement parsed = null;
        try {
            parsed = GSON.fromJson(text, JsonElement.class);
        } catch (JsonParseException e) {
            // Said below: a parser's own words differ from language to language.
        }
        if (!(parsed instanceof JsonObject given)) {
            throw new BadPlan("the plan is not a JSON object; give one, for example {\"target\":\"null:\"}");
        }
        return new Reader().plan(given);
    }

    /** The plan as it is run, for the line {@code start}. */
    Map<String, Object> asRun() {
        Map<String, Object> keys = new LinkedHashMap<>();
        keys.put("pattern", pattern);
        if (!pattern.equals("one")) {
            keys.put("count", keyCount);
        }
        if (pattern.equals("zipf")) {
            keys.put("theta", theta);
        }
        Map<String, Object> plan = new LinkedHashMap<>();
        plan.put("target", target);
        plan.put("op", op);
        plan.put("value_bytes", valueBytes);
        plan.put("total", total);
        plan.put("warmup", warmup);
        plan.put("in_flight", unlimited() ? "unlimited" : inFlight);
        plan.put("keys", keys);
        plan.put("seed", seed);
        plan.put("cluster", cluster);
        plan.put("timeout_ms", timeoutMs);
        plan.put("memory_cap_bytes", memoryCapBytes);
        if (ca != null) {
            plan.put("ca", ca);
        }
        if (insecure) {
            plan.put("insecure", true);
        }
        plan.put("variant", variant);
        return plan;
    }

    private static final class Reader {
        private final List<String> mistakes = new ArrayList<>();

        Plan plan(JsonObject given) throws BadPlan {
            known("", given, KEYS_OF_PLAN);
            JsonElement targetGiven = given.get("target");
            if (!isString(targetGiven) || !TARGETS.matcher(targetGiven.getAsString()).matches()) {
                refuse("target", "hazelcast://HOST:PORT/MAP, redis://HOST:PORT, over TLS hazelcasts:// and rediss://, null: or fake:", targetGiven);
            }
            String op = word("op", given.get("op"), List.of("get", "set", "mix"), "get, set or mix");
            int valueBytes = (int) whole("value_bytes", given.get("value_bytes"), 1, 16_777_216, 3, "");
            long total = whole("total", given.get("total"), 1, 1_000_000_000, 1_000_000, "");
            long warmup = whole("warmup", given.get("warmup"), 0, total - 1, total / 10, "");
            JsonElement inFlightGiven = given.get("in_flight");
            boolean unlimited = isString(inFlightGiven) && inFlightGiven.getAsString().equals("unlimited");
            int inFlight = unlimited
                    ? InFlight.UNLIMITED
                    : (int) whole("in_flight", inFlightGiven, 1, 100_000, 100, " or \"unlimited\"");

            JsonObject keys = new JsonObject();
            if (given.get("keys") instanceof JsonObject object) {
                keys = object;
            } else if (given.has("keys")) {
                refuse("keys", "an object such as {\"pattern\":\"uniform\",\"count\":1000}", given.get("keys"));
            }
            known("keys.", keys, KEYS_OF_KEYS);
            String pattern =
                    word("keys.pattern", keys.get("pattern"), List.of("one", "uniform", "zipf"), "one, uniform or zipf");
            int count = (int) whole("keys.count", keys.get("count"), 1, 1_000_000, 1000, "");
            JsonElement thetaGiven = keys.get("theta");
            double theta = isNumber(thetaGiven) ? thetaGiven.getAsDouble() : 0.99;
            if (thetaGiven != null && !(isNumber(thetaGiven) && theta >= 0 && theta <= 10)) {
                refuse("keys.theta", "a number from 0 to 10", thetaGiven);
            }

            long seed = whole("seed", given.get("seed"), 0, 4_294_967_295L, 1, "");
            JsonElement clusterGiven = given.get("cluster");
            String cluster = isString(clusterGiven) ? clusterGiven.getAsString() : "dev";
            if (clusterGiven != null && (!isString(clusterGiven) || cluster.isEmpty())) {
                refuse("cluster", "a name", clusterGiven);
            }
            long timeoutMs = whole("timeout_ms", given.get("timeout_ms"), 1, 600_000, 10_000, "");
            long memoryCapBytes = whole(
                    "memory_cap_bytes", given.get("memory_cap_bytes"), 1_048_576, 1_099_511_627_776L, 536_870_912, "");
            JsonElement caGiven = given.get("ca");
            String ca = isString(caGiven) ? caGiven.getAsString() : null;
            if (caGiven != null && (ca == null || ca.isEmpty())) {
                refuse("ca", "the path of a PEM file", caGiven);
            }
            JsonElement insecureGiven = given.get("insecure");
            boolean isBoolean = insecureGiven instanceof JsonPrimitive primitive && primitive.isBoolean();
            if (insecureGiven != null && !isBoolean) {
                refuse("insecure", "true or false", insecureGiven);
            }
            boolean insecure = isBoolean && insecureGiven.getAsBoolean();
            String variant = word(
                    "variant", given.get("variant"), List.of("callbacks", "semaphore"), "callbacks or semaphore");
            if (variant.equals("semaphore") && unlimited) {
                mistakes.add("\"variant\" semaphore bounds what is in flight, so \"in_flight\" cannot be \"unlimited\"");
            }
            if (!mistakes.isEmpty()) {
                throw new BadPlan(String.join("; ", mistakes));
            }
            return new Plan(
                    targetGiven.getAsString(), op, valueBytes, total, warmup, inFlight, pattern,
                    pattern.equals("one") ? 1 : count, theta, seed, cluster, timeoutMs, memoryCapBytes, ca,
                    insecure, variant);
        }

        private void refuse(String name, String must, JsonElement value) {
            String got = value == null ? "but is missing" : "got " + GSON.toJson(value);
            mistakes.add("\"" + name + "\" must be " + must + ", " + got);
        }

        private void known(String prefix, JsonObject given, List<String> names) {
            for (String name : given.keySet()) {
                if (!names.contains(name)) {
                    String known = names.stream().map(each -> prefix + each).collect(Collectors.joining(", "));
                    mistakes.add("unknown key \"" + prefix + name + "\"; known are " + known);
                }
            }
        }

        private long whole(String name, JsonElement value, long least, long most, long fallback, String or) {
            if (value == null) {
                return fallback;
            }
            if (isNumber(value)) {
                double number = value.getAsDouble();
                if (number == Math.rint(number) && number >= least && number <= most) {
                    return (long) number;
                }
            }
            refuse(name, "a whole number from " + least + " to " + most + or, value);
            return fallback;
        }

        private String word(String name, JsonElement value, List<String> words, String must) {
            if (value == null) {
                return words.get(0);
            }
            if (isString(value) && words.contains(value.getAsString())) {
                return value.getAsString();
            }
            refuse(name, must, value);
            return words.get(0);
        }

        private static boolean isString(JsonElement value) {
            return value instanceof JsonPrimitive primitive && primitive.isString();
        }

        private static boolean isNumber(JsonElement value) {
            return value instanceof JsonPrimitive primitive && primitive.isNumber();
        }
    }
}
