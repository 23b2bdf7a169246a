// Prints what Kafka Streams takes and refuses when a topology is made: names, and the lengths of windows.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Refusals.java
//
// tests/streams/golden/refusals has these lines. tests/streams/topology/test_refusals.py compares ours with them, and
// writes them again with REWRITE=1. A line of `names` is USE, NAME (`xN` is N times x, `''` none) and `ok` or Kafka's text; of `windows`
// it is WHAT, its value in ms, and `ok` or `refused`.

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.LongConsumer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.TopologyException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;

public class Refusals {
    private static final List<String> NAMES =
        List.of("", ".", "..", "...", "a b", "a/b", "../up", "ok.N_1-", "x".repeat(200), "x".repeat(249), "x".repeat(250));

    public static void main(String[] arguments) {
        System.out.println("== names");
        uses().forEach((use, build) -> {
            for (String name : NAMES) {
                System.out.println(use + " " + told(name) + " " + outcome(build, name));
            }
        });
        System.out.println("== windows");
        lengths().forEach((what, make) -> {
            for (long ms : new long[] {-1, 0, 1, 10, 11}) {
                System.out.println(what + " " + ms + " " + outcome(make, ms));
            }
        });
    }

    private static Map<String, BiConsumer<StreamsBuilder, String>> uses() {
        JoinWindows windows = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(1));
        Map<String, BiConsumer<StreamsBuilder, String>> uses = new LinkedHashMap<>();
        uses.put("store", (b, n) -> b.stream("t").groupByKey().count(Materialized.as(n)));
        uses.put("table-store", (b, n) -> b.table("t", Materialized.as(n)));
        uses.put("global-store", (b, n) -> b.globalTable("t", Materialized.as(n)));
        uses.put("consumed", (b, n) -> b.stream("t", Consumed.as(n)));
        uses.put("filter", (b, n) -> b.stream("t").filter((k, v) -> true, Named.as(n)));
        uses.put("produced", (b, n) -> b.stream("t").to("o", Produced.as(n)));
        uses.put("grouped", (b, n) -> b.stream("t").groupByKey(Grouped.as(n)));
        uses.put("joined", (b, n) -> b.stream("t").join(b.table("u"), (x, y) -> x, Joined.as(n)));
        uses.put("stream-joined", (b, n) -> b.stream("t").join(b.stream("u"), (x, y) -> x, windows,
            StreamJoined.<Object, Object, Object>as("s").withName(n)));
        uses.put("split", (b, n) -> b.stream("t").split(Named.as(n)));
        uses.put("printed", (b, n) -> b.stream("t").print(Printed.toSysOut().withName(n)));
        return uses;
    }

    private static Map<String, LongConsumer> lengths() {
        Map<String, LongConsumer> lengths = new LinkedHashMap<>();
        Duration ten = Duration.ofMillis(10);
        lengths.put("time-size", n -> TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(n)));
        lengths.put("time-grace", n -> TimeWindows.ofSizeAndGrace(ten, Duration.ofMillis(n)));
        lengths.put("time-advance", n -> TimeWindows.ofSizeWithNoGrace(ten).advanceBy(Duration.ofMillis(n)));
        lengths.put("sliding-difference", n -> SlidingWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(n)));
        lengths.put("sliding-grace", n -> SlidingWindows.ofTimeDifferenceAndGrace(ten, Duration.ofMillis(n)));
        lengths.put("session-gap", n -> SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMillis(n)));
        lengths.put("session-grace", n -> SessionWindows.ofInactivityGapAndGrace(ten, Duration.ofMillis(n)));
        lengths.put("join-difference", n -> JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(n)));
        lengths.put("join-grace", n -> JoinWindows.ofTimeDifferenceAndGrace(ten, Duration.ofMillis(n)));
        lengths.put("join-before", n -> JoinWindows.ofTimeDifferenceWithNoGrace(ten).before(Duration.ofMillis(-n)));
        lengths.put("join-after", n -> JoinWindows.ofTimeDifferenceWithNoGrace(ten).after(Duration.ofMillis(-n)));
        lengths.put("unlimited-start", n -> UnlimitedWindows.of().startOn(Instant.ofEpochMilli(n)));
        return lengths;
    }

    private static String told(String name) {
        return name.isEmpty() ? "''" : name.startsWith("xx") ? "x" + name.length() : "'" + name + "'";
    }

    private static String outcome(BiConsumer<StreamsBuilder, String> build, String name) {
        try {
            StreamsBuilder builder = new StreamsBuilder();
            build.accept(builder, name);
            builder.build();
            return "ok";
        } catch (TopologyException error) {
            return error.getMessage().replace("Invalid topology: ", "");
        }
    }

    private static String outcome(LongConsumer make, long ms) {
        try {
            make.accept(ms);
            return "ok";
        } catch (IllegalArgumentException error) {
            return "refused";
        }
    }
}
