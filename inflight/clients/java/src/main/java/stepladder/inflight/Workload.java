package stepladder.inflight;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.zip.CRC32;

/** Which key, value and kind operation i has: pure functions of the plan and i, the same in every language (README.md). */
final class Workload {
    enum Kind {
        GET,
        SET,
        DELETE
    }

    private static final String ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    private final Plan plan;
    private final String[] names;
    private final byte[] starts;
    private final long[] limits;
    private final AtomicReferenceArray<String> values = new AtomicReferenceArray<>(ALPHABET.length());

    Workload(Plan plan) {
        this.plan = plan;
        names = new String[plan.keyCount()];
        starts = new byte[names.length];
        for (int j = 0; j < names.length; j++) {
            names[j] = "k" + j;
            CRC32 crc = new CRC32();
            crc.update(names[j].getBytes(StandardCharsets.US_ASCII));
            starts[j] = (byte) (crc.getValue() % ALPHABET.length());
        }
        limits = plan.pattern().equals("zipf") ? zipfLimits(names.length, plan.theta()) : null;
    }

    int keyCount() {
        return names.length;
    }

    /** The name of key number {@code key}. */
    String name(int key) {
        return names[key];
    }

    Kind kind(long i) {
        return switch (plan.op()) {
            case "get" -> Kind.GET;
            case "set" -> Kind.SET;
            default -> mixed(draw(plan.seed(), 2 * i));
        };
    }

    /** Number of operation i's key. */
    int key(long i) {
        return switch (plan.pattern()) {
            case "one" -> 0;
            case "uniform" -> (int) (draw(plan.seed(), 2 * i + 1) * names.length >>> 32);
            default -> firstAbove(limits, draw(plan.seed(), 2 * i + 1));
        };
    }

    /** The value of key number {@code key}. There are only 62 of a length, and each is made once. */
    String value(int key) {
        int start = starts[key];
        String value = values.get(start);
        if (value == null) {
            byte[] bytes = new byte[plan.valueBytes()];
            for (int i = 0; i < bytes.length; i++) {
                bytes[i] = (byte) ALPHABET.charAt((i + start) % ALPHABET.length());
            }
            value = new String(bytes, StandardCharsets.ISO_8859_1);
            values.set(start, value);
        }
        return value;
    }

    /** A key that is practically never there: what the replaced benchmark asked for. */
    String unroundedKey(long i) {
        return String.valueOf(draw(plan.seed(), 2 * i + 1) / (double) (1L << 32));
    }

    /** The n-th random number of a seed, from 0 to 2^32 − 1: counted, so that it does not depend on who draws when. */
    static long draw(long seed, long n) {
        int h = (int) (seed + n * 0x9e3779b9L);
        h = (h ^ h >>> 16) * 0x85ebca6b;
        h = (h ^ h >>> 13) * 0xc2b2ae35;
        return Integer.toUnsignedLong(h ^ h >>> 16);
    }

    /** 40 % get, 40 % set, 20 % delete. */
    private static Kind mixed(long share) {
        return share < 1_717_986_918L ? Kind.GET : share < 3_435_973_836L ? Kind.SET : Kind.DELETE;
    }

    /** Key j is drawn when the number is below limits[j] and not below the one before: ∝ 1 / (j + 1)^theta. */
    private static long[] zipfLimits(int count, double theta) {
        double[] sums = new double[count];
        double sum = 0;
        for (int j = 0; j < count; j++) {
            sum += Math.pow(j + 1, -theta);
            sums[j] = sum;
        }
        long[] limits = new long[count];
        for (int j = 0; j < count; j++) {
            limits[j] = (long) (sums[j] / sum * (1L << 32));
        }
        limits[count - 1] = 1L << 32;
        return limits;
    }

    private static int firstAbove(long[] limits, long share) {
        int low = 0;
        int high = limits.length - 1;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (share < limits[middle]) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }
}
