// Runs scripts by Kafka's TopologyTestDriver, and prints each with what comes out: the rules of streams in
// tests/streams/golden/rules, to which tests/streams/dsl/test_rules.py holds ours, and which it writes anew with
// REWRITE=1.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Rules.java FOLDER SCRIPT...
//
// State is kept in the folder. A script's name is that of its program below. `pipe TOPIC KEY VALUE TIMESTAMP` pipes a record in, `-` is
// null; `wall MS` moves the wall clock, which begins at 3. Outer joins look for closed windows with each record, but
// in programs whose names end with `-throttled`. Behind each step come the records written by it, as
// `-> KEY VALUE TIMESTAMP`. Other lines are comments.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.ValueJoinerWithKey;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.test.TestRecord;

public class Rules {
    private static final Map<String, Consumer<StreamsBuilder>> PROGRAMS = new TreeMap<>();
    private static final Duration TEN = Duration.ofMillis(10);
    private static final Duration FIVE = Duration.ofMillis(5);

    static {
        PROGRAMS.put("punctuation", b -> b.<String, String>stream("in").process(Sums::new).to("out"));
        PROGRAMS.put("count", Rules::count);
        PROGRAMS.put("reduce", Rules::reduce);
        PROGRAMS.put("windows", Rules::windows);
        PROGRAMS.put("join", Rules::join);
        PROGRAMS.put("left-join", Rules::leftJoin);
        PROGRAMS.put("table", Rules::table);
        PROGRAMS.put("left-out", Rules::leftOut);
        PROGRAMS.put("branches", Rules::branches);
        PROGRAMS.put("table-without-a-store", Rules::tableWithoutAStore);
        PROGRAMS.put("table-kept-again", Rules::tableKeptAgain);
        PROGRAMS.put("grouped-table", Rules::groupedTable);
        PROGRAMS.put("grouped-table-count", Rules::groupedTableCount);
        PROGRAMS.put("grouped-table-reduce", Rules::groupedTableReduce);
        PROGRAMS.put("counts-grouped", Rules::countsGrouped);
        PROGRAMS.put("suppress-window", Rules::suppressWindow);
        PROGRAMS.put("suppress-time", Rules::suppressTime);
        PROGRAMS.put("suppress-records", Rules::suppressRecords);
        PROGRAMS.put("suppress-bytes", Rules::suppressBytes);
        PROGRAMS.put("suppress-joined", Rules::suppressJoined);
        PROGRAMS.put("transform-values", b -> transformed(b, null));
        PROGRAMS.put("transform-values-kept", b -> transformed(b, Materialized.as("lengths")));
        PROGRAMS.put("stream-join", b -> streams(b, "inner", JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE)));
        PROGRAMS.put("stream-left-join", b -> streams(b, "left", JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE)));
        PROGRAMS.put("stream-outer-join", b -> streams(b, "outer", JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE)));
        PROGRAMS.put("stream-outer-join-throttled", PROGRAMS.get("stream-outer-join"));
        PROGRAMS.put("stream-outer-join-before",
            b -> streams(b, "outer", JoinWindows.ofTimeDifferenceWithNoGrace(TEN).after(Duration.ZERO)));
        PROGRAMS.put("stream-left-join-after",
            b -> streams(b, "left", JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE).before(Duration.ofMillis(-2))));
        PROGRAMS.put("stream-outer-join-same-time",
            b -> streams(b, "outer", JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ZERO)));
        PROGRAMS.put("stream-self-join", Rules::selfJoin);
        PROGRAMS.put("foreign-join", b -> foreign(b, false));
        PROGRAMS.put("foreign-left-join", b -> foreign(b, true));
        PROGRAMS.put("foreign-join-stored", Rules::foreignStored);
        PROGRAMS.put("global-join", b -> global(b, false));
        PROGRAMS.put("global-left-join", b -> global(b, true));
        PROGRAMS.put("join-with-key", Rules::joinWithKey);
        for (String kind : List.of("inner", "left", "outer")) {
            PROGRAMS.put("table-" + kind + "-join", b -> tables(b, kind, null));
            PROGRAMS.put("table-" + kind + "-join-stored", b -> tables(b, kind, Materialized.as("joined")));
            PROGRAMS.put("table-" + kind + "-join-read", b -> joinedTwice(b, kind));
        }
        for (String kind : List.of("inner", "left", "outer")) {
            PROGRAMS.put("table-" + kind + "-join-uncached", b -> tablesUncached(b, kind));
            for (String again : List.of("inner", "left", "outer")) {
                PROGRAMS.put("table-" + kind + "-" + again + "-join", b -> joinedAgain(b, kind, again));
            }
            PROGRAMS.put("stream-" + kind + "-join-repartitioned", b -> streamsRepartitioned(b, kind));
        }
        PROGRAMS.put("nulls-aggregate", b -> nulls(b).aggregate(() -> null, Rules::add).toStream().to("out"));
        PROGRAMS.put("nulls-reduce", b -> nulls(b).reduce(Rules::odd).toStream().to("out"));
        PROGRAMS.put("nulls-aggregate-told", Rules::nullsTold);
        PROGRAMS.put("nulls-grouped-table",
            b -> grouped(b).aggregate(() -> null, Rules::add, Rules::subtract).toStream().to("out"));
        PROGRAMS.put("nulls-grouped-table-reduce",
            b -> grouped(b).reduce(Rules::odd, (x, y) -> y.endsWith("1") ? null : x + "-" + y).toStream().to("out"));
        PROGRAMS.put("nulls-cogroup", Rules::nullsCogroup);
        PROGRAMS.put("nulls-stream-join", b -> b.<String, String>stream("l").leftJoin(
            b.<String, String>stream("r"), (ValueJoiner<String, String, String>) Rules::odd,
            JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE)).to("out"));
        PROGRAMS.put("nulls-stream-table-join",
            b -> b.<String, String>stream("l").leftJoin(b.<String, String>table("r"), Rules::odd).to("out"));
        PROGRAMS.put("nulls-table-join", b -> b.<String, String>table("l").outerJoin(
            b.<String, String>table("r"), Rules::odd, Materialized.as("joined")).toStream().to("out"));
        PROGRAMS.put("nulls-table-join-not-stored", Rules::nullsNotStored);
        PROGRAMS.put("nulls-foreign-join", b -> b.<String, String>table("l").<String, String, String>leftJoin(
            b.table("r"), v -> v.substring(0, 1), Rules::odd).toStream().to("out"));
        PROGRAMS.put("nulls-values", Rules::nullsOfValues);
        PROGRAMS.put("stream-inner-inner-join", Rules::streamsJoinedAgain);
        PROGRAMS.put("stream-table-inner-join", b -> streamAndTable(b, false));
        PROGRAMS.put("stream-table-left-join", b -> streamAndTable(b, true));
        for (String kind : List.of("inner", "left", "outer")) {
            PROGRAMS.put("stream-" + kind + "-random",
                b -> streams(b, kind, JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE).after(FIVE)));
        }
    }

    private static org.apache.kafka.streams.kstream.KGroupedStream<String, String> nulls(StreamsBuilder b) {
        return b.<String, String>stream("in").groupByKey();
    }

    /** Null where the other ends with 0. */
    private static String odd(String one, String other) {
        return other != null && other.endsWith("0") ? null : one + "+" + other;
    }

    private static String add(String key, String value, String result) {
        return odd(result, value);
    }

    private static String subtract(String key, String value, String result) {
        return value.endsWith("1") ? null : result + "-" + value;
    }

    private static void nullsTold(StreamsBuilder b) {
        nulls(b).aggregate(() -> "", Rules::add,
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("a").withCachingDisabled())
            .groupBy((k, v) -> KeyValue.pair(v.substring(v.length() - 1), v))
            .aggregate(() -> "", (k, v, a) -> a + "," + v, (k, v, a) -> a + "-" + v)
            .toStream()
            .to("out");
    }

    private static void nullsCogroup(StreamsBuilder b) {
        nulls(b).<String>cogroup(Rules::add)
            .cogroup(b.<String, String>stream("other").groupByKey(), (k, v, a) -> odd(a, v + "*"))
            .aggregate(() -> null)
            .toStream()
            .to("out");
    }

    private static void nullsNotStored(StreamsBuilder b) {
        b.<String, String>table("l").outerJoin(b.<String, String>table("r"), Rules::odd)
            .filter((k, v) -> !v.endsWith("7"))
            .leftJoin(b.table("r2"), (x, y) -> x + "/" + y)
            .toStream()
            .to("out");
    }

    private static void nullsOfValues(StreamsBuilder b) {
        KTable<String, String> table = b.<String, String>table("in").mapValues(v -> odd("t", v), Materialized.as("m"));
        table.groupBy((k, v) -> KeyValue.pair(k, v)).reduce((x, y) -> x + y, (x, y) -> x + "-" + y).toStream().to("out");
        b.<String, String>stream("l").mapValues(v -> odd("s", v)).to("out");
        b.<String, String>stream("l").filter((k, v) -> true).flatMapValues(v -> java.util.Arrays.asList(v, null)).to("out");
    }

    private static void count(StreamsBuilder b) {
        b.<String, String>stream("in").groupByKey().count().toStream().mapValues(String::valueOf).to("out");
    }

    private static void reduce(StreamsBuilder b) {
        b.<String, String>stream("in").groupBy((k, v) -> k).reduce((x, y) -> x + y).toStream().to("out");
    }

    private static void windows(StreamsBuilder b) {
        b.<String, String>stream("in")
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(10), Duration.ofMillis(5)))
            .count()
            .toStream()
            .map((k, v) -> KeyValue.pair(k.key() + "@" + k.window().start(), String.valueOf(v)))
            .to("out");
    }

    private static void join(StreamsBuilder b) {
        KTable<String, String> table = b.table("t");
        b.<String, String>stream("in").join(table, (x, y) -> x + "+" + y).to("out");
    }

    private static void leftJoin(StreamsBuilder b) {
        KTable<String, String> table = b.table("t");
        b.<String, String>stream("in").leftJoin(table, (x, y) -> x + "+" + y).to("out");
    }

    private static void table(StreamsBuilder b) {
        KTable<String, String> table = b.table("in");
        table.filter((k, v) -> !v.startsWith("x")).mapValues(v -> v + "!").toStream().to("out");
    }

    private static void leftOut(StreamsBuilder b) {
        b.<String, String>stream("in")
            .flatMapValues(v -> java.util.List.of(v.split(",")))
            .mapValues(v -> String.valueOf(12 / Integer.parseInt(v)))
            .to("out");
    }

    private static void branches(StreamsBuilder b) {
        Map<String, KStream<String, String>> branches = b.<String, String>stream("in")
            .split(Named.as("by-"))
            .branch((k, v) -> v.startsWith("a"), Branched.as("a"))
            .branch((k, v) -> v.startsWith("ab"), Branched.withConsumer(stream -> stream.to("out")))
            .branch((k, v) -> v.startsWith("b"), Branched.as("b"))
            .defaultBranch(Branched.as("rest"));
        branches.forEach((name, stream) -> stream.mapValues((k, v) -> name + ":" + k + v).to("out"));
    }

    private static void tableWithoutAStore(StreamsBuilder b) {
        KTable<String, String> table = b.table("in");
        table.filter((k, v) -> !v.startsWith("x")).toStream().to("out");
    }

    private static void tableKeptAgain(StreamsBuilder b) {
        KTable<String, String> table = b.table("in", Materialized.as("all"));
        table.filter((k, v) -> !v.startsWith("x"), Materialized.as("kept"))
            .mapValues(v -> v + "!", Materialized.as("mapped"))
            .toStream()
            .to("out");
    }

    private static void groupedTable(StreamsBuilder b) {
        grouped(b).aggregate(() -> "", (k, v, a) -> a + "+" + v, (k, v, a) -> a + "-" + v).toStream().to("out");
    }

    private static void groupedTableCount(StreamsBuilder b) {
        grouped(b).count().toStream().mapValues(String::valueOf).to("out");
    }

    private static void groupedTableReduce(StreamsBuilder b) {
        grouped(b).reduce((x, y) -> x + "+" + y, (x, y) -> x.equals(y) ? null : x + "-" + y).toStream().to("out");
    }

    /** By the first letter of the value; those of `.` in none. */
    private static KGroupedTable<String, String> grouped(StreamsBuilder b) {
        return b.<String, String>table("in")
            .groupBy((k, v) -> KeyValue.pair(v.startsWith(".") ? null : v.substring(0, 1), v));
    }

    /** Counts, whose updates are told one by one, counted. */
    private static void countsGrouped(StreamsBuilder b) {
        b.<String, String>stream("in")
            .groupByKey()
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("c").withCachingDisabled())
            .groupBy((k, v) -> KeyValue.pair("n" + v, k), Grouped.with(Serdes.String(), Serdes.String()))
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to("out");
    }

    private static void suppressWindow(StreamsBuilder b) {
        b.<String, String>stream("in")
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(10), Duration.ofMillis(5)))
            .count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream()
            .map((k, v) -> KeyValue.pair(k.key() + "@" + k.window().start(), String.valueOf(v)))
            .to("out");
    }

    private static void suppressTime(StreamsBuilder b) {
        suppressed(b, 10, Suppressed.BufferConfig.unbounded());
    }

    private static void suppressRecords(StreamsBuilder b) {
        suppressed(b, 1000, Suppressed.BufferConfig.maxRecords(2));
    }

    private static void suppressBytes(StreamsBuilder b) {
        suppressed(b, 1000, Suppressed.BufferConfig.maxBytes(100));
    }

    private static void suppressed(StreamsBuilder b, long wait, Suppressed.BufferConfig<?> buffer) {
        b.<String, String>table("in")
            .suppress(Suppressed.untilTimeLimit(Duration.ofMillis(wait), buffer))
            .toStream()
            .to("out");
    }

    /** Joined with a table's transformed values, and grouped by them, which asks for old ones. */
    private static void transformed(
            StreamsBuilder b, Materialized<String, String, KeyValueStore<Bytes, byte[]>> materialized) {
        KTable<String, String> table = b.table("t");
        KTable<String, String> lengths = materialized == null
            ? table.transformValues(Lengths::new)
            : table.transformValues(Lengths::new, materialized);
        b.<String, String>stream("in").leftJoin(lengths, (x, y) -> x + "+" + y).to("out");
        lengths.groupBy((k, v) -> KeyValue.pair(v, k), Grouped.with(Serdes.String(), Serdes.String()))
            .aggregate(() -> "", (k, v, a) -> a + "+" + v, (k, v, a) -> a + "-" + v)
            .toStream()
            .to("out");
    }

    /** As `Lengths` in tests/streams/dsl/test_rules.py. */
    private static class Lengths implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
        }

        @Override
        public String transform(String key, String value) {
            return value == null ? "gone" : value.equals("x") ? null : key + value.length();
        }

        @Override
        public void close() {
        }
    }

    /** Records joined with a table as it is known outside. */
    private static void suppressJoined(StreamsBuilder b) {
        KTable<String, String> table = b.<String, String>table("t")
            .suppress(Suppressed.untilTimeLimit(Duration.ofMillis(10), Suppressed.BufferConfig.unbounded()));
        b.<String, String>stream("in").leftJoin(table, (x, y) -> x + "+" + y).to("out");
    }

    private static void streams(StreamsBuilder b, String kind, JoinWindows windows) {
        streams(b.stream("l"), b.stream("r"), kind, windows);
    }

    private static void streams(
            KStream<String, String> left, KStream<String, String> right, String kind, JoinWindows windows) {
        ValueJoiner<String, String, String> joiner = (x, y) -> x + "+" + y;
        switch (kind) {
            case "inner" -> left.join(right, joiner, windows).to("out");
            case "left" -> left.leftJoin(right, joiner, windows).to("out");
            default -> left.outerJoin(right, joiner, windows).to("out");
        }
    }

    /** Both through repartition topics, under the keys they had. */
    private static void streamsRepartitioned(StreamsBuilder b, String kind) {
        streams(
            b.<String, String>stream("l").map(KeyValue::pair),
            b.<String, String>stream("r").map(KeyValue::pair),
            kind,
            JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE));
    }

    /** What came of a join, joined with the same stream. */
    private static void streamsJoinedAgain(StreamsBuilder b) {
        KStream<String, String> right = b.stream("r");
        ValueJoiner<String, String, String> joiner = (x, y) -> x + "+" + y;
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE);
        b.<String, String>stream("l").join(right, joiner, windows).join(right, joiner, windows).to("out");
    }

    private static void streamAndTable(StreamsBuilder b, boolean left) {
        KTable<String, String> table = b.table("r");
        KStream<String, String> stream = b.stream("l");
        ValueJoiner<String, String, String> joiner = (x, y) -> x + "+" + y;
        (left ? stream.leftJoin(table, joiner) : stream.join(table, joiner)).to("out");
    }

    /** What is before the `|` of a value, none of `none`. */
    private static String foreignKey(String value) {
        String key = value.split("[|]")[0];
        return key.equals("none") ? null : key;
    }

    private static void foreign(StreamsBuilder b, boolean left) {
        KTable<String, String> table = b.table("l");
        KTable<String, String> other = b.table("r");
        ValueJoiner<String, String, String> joiner = (x, y) -> x + "+" + y;
        (left ? table.leftJoin(other, Rules::foreignKey, joiner) : table.join(other, Rules::foreignKey, joiner))
            .toStream()
            .to("out");
    }

    /** Of filtered and mapped tables, by a foreign key of key and value, in a store that a stream reads. */
    private static void foreignStored(StreamsBuilder b) {
        KTable<String, String> table =
            b.<String, String>table("l").filter((k, v) -> !v.contains("7"));
        KTable<String, String> other = b.<String, String>table("r").mapValues(v -> v + "!",
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>with(Serdes.String(), Serdes.String()));
        KTable<String, String> joined = table.leftJoin(other,
            (k, v) -> v.startsWith("x|") ? k : foreignKey(v),
            (x, y) -> x + "+" + y,
            Materialized.as("joined"));
        joined.filter((k, v) -> !v.contains("3")).toStream().to("out");
        b.<String, String>stream("in").leftJoin(joined, (x, y) -> x + "+" + y).to("out");
    }

    private static void global(StreamsBuilder b, boolean left) {
        GlobalKTable<String, String> table = b.globalTable("t");
        KStream<String, String> stream = b.stream("in");
        KeyValueMapper<String, String, String> selector = (k, v) -> v == null || v.equals("none") ? null : v;
        ValueJoinerWithKey<String, String, String, String> joiner = (k, x, y) -> k + ":" + x + "+" + y;
        (left ? stream.leftJoin(table, selector, joiner) : stream.join(table, selector, joiner)).to("out");
    }

    private static void joinWithKey(StreamsBuilder b) {
        KTable<String, String> table = b.table("t");
        ValueJoinerWithKey<String, String, String, String> joiner = (k, x, y) -> k + ":" + x + "+" + y;
        b.<String, String>stream("in").leftJoin(table, joiner).to("out");
    }

    private static KTable<String, String> joined(
            KTable<String, String> left, KTable<String, String> right, String kind,
            Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        ValueJoiner<String, String, String> joiner = (x, y) -> x + "+" + y;
        return switch (kind) {
            case "inner" -> kept == null ? left.join(right, joiner) : left.join(right, joiner, kept);
            case "left" -> kept == null ? left.leftJoin(right, joiner) : left.leftJoin(right, joiner, kept);
            default -> kept == null ? left.outerJoin(right, joiner) : left.outerJoin(right, joiner, kept);
        };
    }

    private static void tables(
            StreamsBuilder b, String kind, Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        joined(b.table("l"), b.table("r"), kind, kept).toStream().to("out");
    }

    /** A join of a filtered table, read by another join, filtered: with old values and without a store. */
    private static void joinedTwice(StreamsBuilder b, String kind) {
        KTable<String, String> left = b.<String, String>table("l").filter((k, v) -> !v.startsWith("x"));
        KTable<String, String> joined = joined(left, b.table("r"), kind, null);
        joined(joined, b.<String, String>table("t").mapValues(v -> v + "!"), kind, null)
            .filter((k, v) -> !v.contains("7"))
            .toStream()
            .to("out");
    }

    /** What came of a join, joined with the same table, into a store. */
    private static void joinedAgain(StreamsBuilder b, String kind, String again) {
        KTable<String, String> right = b.table("r");
        KTable<String, String> joined = joined(b.table("l"), right, kind, null);
        joined(joined, right, again, Materialized.as("joined")).toStream().to("out");
    }

    /** All three tables tell each update. */
    private static void tablesUncached(StreamsBuilder b, String kind) {
        KTable<String, String> left = b.table("l", uncached("left"));
        joined(left, b.table("r", uncached("right")), kind, uncached("joined")).toStream().to("out");
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> uncached(String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name).withCachingDisabled();
    }

    private static void selfJoin(StreamsBuilder b) {
        KStream<String, String> stream = b.stream("in");
        ValueJoinerWithKey<String, String, String, String> joiner = (k, x, y) -> k + ":" + x + "+" + y;
        stream.leftJoin(stream, joiner, JoinWindows.ofTimeDifferenceAndGrace(TEN, FIVE)).to("out");
    }

    /** As `Sums` in tests/streams/dsl/test_rules.py. */
    private static class Sums implements Processor<String, String, String, String> {
        private int total;

        @Override
        public void init(ProcessorContext<String, String> context) {
            context.schedule(Duration.ofMillis(10), PunctuationType.STREAM_TIME,
                now -> context.forward(new Record<>("stream", String.valueOf(total), now)));
            context.schedule(Duration.ofMillis(100), PunctuationType.WALL_CLOCK_TIME,
                now -> context.forward(new Record<>("wall", String.valueOf(total), now)));
        }

        @Override
        public void process(Record<String, String> record) {
            total += Integer.parseInt(record.value());
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            Path path = Path.of(arguments[i]);
            String name = path.getFileName().toString().replace(".txt", "");
            System.out.println("== " + name);
            StreamsBuilder builder = new StreamsBuilder();
            PROGRAMS.get(name).accept(builder);
            try (TopologyTestDriver driver =
                     new TopologyTestDriver(builder.build(), settings(arguments[0], name), Instant.ofEpochMilli(3))) {
                play(driver, path);
            }
        }
    }

    private static Properties settings(String folder, String name) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(
            StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueProcessingExceptionHandler.class);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        if (name.endsWith("-throttled")) {
            settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 1000L);
        }
        return settings;
    }

    private static void play(TopologyTestDriver driver, Path script) throws Exception {
        TestOutputTopic<String, String> out =
            driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
        for (String line : Files.readAllLines(script)) {
            if (line.startsWith("->")) {
                continue;
            }
            System.out.println(line);
            String[] words = line.split(" ");
            if (words[0].equals("pipe")) {
                driver.createInputTopic(words[1], new StringSerializer(), new StringSerializer())
                    .pipeInput(read(words[2]), read(words[3]), Long.parseLong(words[4]));
            } else if (words[0].equals("wall")) {
                driver.advanceWallClockTime(Duration.ofMillis(Long.parseLong(words[1])));
            }
            for (TestRecord<String, String> record : out.readRecordsToList()) {
                System.out.println("-> " + told(record.key()) + " " + told(record.value()) + " " + record.timestamp());
            }
        }
    }

    private static String read(String word) {
        return word.equals("-") ? null : word;
    }

    private static String told(String value) {
        return value == null ? "-" : value;
    }
}
