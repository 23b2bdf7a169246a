// Runs scripts by Kafka's TopologyTestDriver, and prints each with what comes out: the scenarios of Kafka's own tests
// of streams, one file per test class in tests/streams/golden/published, to which tests/streams/dsl/test_published.py
// holds ours, and which it writes anew with REWRITE=1.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Published.java FOLDER SCRIPT...
//
// State is kept in the folder. A scenario begins with `scenario NAME PROGRAM NAME=VALUE...`; the programs are below, with
// what they take. Tables are plain, cached, uncached or versioned. `pipe TOPIC KEY VALUE TIMESTAMP` pipes a record in,
// `-` is null. Behind each step come the records written by it, as `-> KEY VALUE TIMESTAMP #N`, where N says which
// record's headers they have, or `-> fails` where the topology ends. Other lines are comments.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.BiConsumer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.test.TestRecord;

public class Published {
    private static final Map<String, BiConsumer<StreamsBuilder, Wanted>> PROGRAMS = new HashMap<>();
    private static final ValueJoiner<String, String, String> JOINER = (x, y) -> x + "+" + y;
    private static final Aggregator<String, String, String> ADDER = (k, v, a) -> a + "+" + v;
    private static final Aggregator<String, String, String> REMOVER = (k, v, a) -> a + "-" + v;

    static {
        PROGRAMS.put("streams", Published::streams);
        PROGRAMS.put("tables", Published::tables);
        PROGRAMS.put("stream-table", Published::streamAndTable);
        PROGRAMS.put("foreign", Published::foreign);
        PROGRAMS.put("global", Published::global);
        PROGRAMS.put("table", Published::table);
        PROGRAMS.put("grouped", Published::grouped);
        PROGRAMS.put("aggregated", Published::aggregated);
        PROGRAMS.put("suppress", Published::suppress);
        PROGRAMS.put("cogroup", Published::cogroup);
        PROGRAMS.put("stateless", Published::stateless);
    }

    /** What a scenario's first line says. */
    private static class Wanted {
        final String program;
        final Map<String, String> values = new HashMap<>();

        Wanted(String[] words) {
            program = words[2];
            for (int i = 3; i < words.length; i++) {
                values.put(words[i].split("=")[0], words[i].split("=")[1]);
            }
        }

        boolean has(String name) {
            return values.containsKey(name);
        }

        String get(String name, String otherwise) {
            return values.getOrDefault(name, otherwise);
        }

        Duration ms(String name) {
            return Duration.ofMillis(Long.parseLong(get(name, "0")));
        }

        /** As the word says how a table is kept; null for `plain`. */
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept(String how, String name) {
            Materialized<String, String, KeyValueStore<Bytes, byte[]>> store = how.equals("versioned")
                ? Materialized.as(Stores.persistentVersionedKeyValueStore(
                    name, Duration.ofMillis(Long.parseLong(get("history", "300000")))))
                : Materialized.as(name);
            store.withKeySerde(Serdes.String()).withValueSerde(Serdes.String());
            return switch (how) {
                case "plain" -> null;
                case "uncached" -> store.withCachingDisabled();
                default -> store;
            };
        }

        /** Kept as the value of this name says. */
        KTable<String, String> table(StreamsBuilder b, String topic, String value) {
            Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept = kept(get(value, "plain"), topic + "-rows");
            KTable<String, String> table = kept == null ? b.table(topic) : b.table(topic, kept);
            return get("suppress", "").equals(value)
                ? table.suppress(Suppressed.untilTimeLimit(Duration.ofMillis(10), Suppressed.BufferConfig.unbounded()))
                : table;
        }
    }

    /** kind=inner, left or outer, before, after, grace; self=true: `in` with itself; rekeyed=true: by repartition topics. */
    private static void streams(StreamsBuilder b, Wanted wanted) {
        KStream<String, String> left = b.stream(wanted.has("self") ? "in" : "l");
        KStream<String, String> right = wanted.has("self") ? left : b.stream("r");
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(1_000_000), wanted.ms("grace"))
            .before(wanted.ms("before")).after(wanted.ms("after"));
        if (wanted.has("rekeyed")) {
            left = left.map(KeyValue::pair);
            right = right.map(KeyValue::pair);
        }
        StreamJoined<String, String, String> joined =
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
        switch (wanted.get("kind", "inner")) {
            case "inner" -> left.join(right, JOINER, windows, joined).to("out");
            case "left" -> left.leftJoin(right, JOINER, windows, joined).to("out");
            default -> left.outerJoin(right, JOINER, windows, joined).to("out");
        }
    }

    private static KTable<String, String> joined(
            KTable<String, String> left, KTable<String, String> right, String kind,
            Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        return switch (kind) {
            case "inner" -> kept == null ? left.join(right, JOINER) : left.join(right, JOINER, kept);
            case "left" -> kept == null ? left.leftJoin(right, JOINER) : left.leftJoin(right, JOINER, kept);
            default -> kept == null ? left.outerJoin(right, JOINER) : left.outerJoin(right, JOINER, kept);
        };
    }

    /** kind; left, right, store: how kept; suppress=left or right, 10 ms; then=kind: with the right table once more. */
    private static void tables(StreamsBuilder b, Wanted wanted) {
        KTable<String, String> left = wanted.table(b, "l", "left");
        KTable<String, String> right = wanted.table(b, "r", "right");
        KTable<String, String> joined =
            joined(left, right, wanted.get("kind", "inner"), wanted.kept(wanted.get("store", "plain"), "joined"));
        if (wanted.has("then")) {
            joined = joined(joined, right, wanted.get("then", ""), null);
        }
        tell(joined, wanted);
    }

    /** kind=inner or left, right: how it is kept, grace: of a versioned one; rekeyed=true: by a repartition topic. */
    private static void streamAndTable(StreamsBuilder b, Wanted wanted) {
        KStream<String, String> stream = b.stream("l");
        if (wanted.has("rekeyed")) {
            stream = stream.map(KeyValue::pair);
        }
        KTable<String, String> table = wanted.table(b, "r", "right");
        Joined<String, String, String> how = Joined.with(Serdes.String(), Serdes.String(), Serdes.String());
        if (wanted.has("grace")) {
            how = how.withGracePeriod(wanted.ms("grace"));
        }
        (wanted.get("kind", "inner").equals("left") ? stream.leftJoin(table, JOINER, how) : stream.join(table, JOINER, how))
            .to("out");
    }

    /** Behind the `|` of a value, null of `null` or without one. */
    private static String foreignKey(String value) {
        String[] parts = value.split("[|]");
        return parts.length < 2 || parts[1].equals("null") ? null : parts[1];
    }

    /** kind=inner or left; left, right, store: how kept; rejoin=true: with the left table again; self=true. */
    private static void foreign(StreamsBuilder b, Wanted wanted) {
        KTable<String, String> left = wanted.table(b, "l", "left");
        KTable<String, String> right = wanted.has("self") ? left : wanted.table(b, "r", "right");
        boolean isLeft = wanted.get("kind", "inner").equals("left");
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept =
            wanted.kept(wanted.get("store", "uncached"), "joined");
        KTable<String, String> joined = kept == null
            ? isLeft ? left.leftJoin(right, Published::foreignKey, JOINER) : left.join(right, Published::foreignKey, JOINER)
            : isLeft ? left.leftJoin(right, Published::foreignKey, JOINER, kept)
            : left.join(right, Published::foreignKey, JOINER, kept);
        tell(joined, wanted);
        if (wanted.has("rejoin")) {
            joined(joined, left, isLeft ? "left" : "inner", null).toStream().to("out");
        }
    }

    /** kind=inner or left, by=key or value: what selects the row, null of `none`. */
    private static void global(StreamsBuilder b, Wanted wanted) {
        GlobalKTable<String, String> table = b.globalTable("r");
        KStream<String, String> stream = b.stream("l");
        boolean byValue = wanted.get("by", "key").equals("value");
        KeyValueMapper<String, String, String> selector = (k, v) -> byValue ? "none".equals(v) ? null : v : k;
        (wanted.get("kind", "inner").equals("left")
            ? stream.leftJoin(table, selector, JOINER) : stream.join(table, selector, JOINER)).to("out");
    }

    /** op=source, filter, filter-not (of `2` and `4`) or map; from, store: how kept; below=group: tells old values. */
    private static void table(StreamsBuilder b, Wanted wanted) {
        KTable<String, String> table = wanted.table(b, "in", "from");
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept =
            wanted.kept(wanted.get("store", "plain"), "derived");
        KTable<String, String> derived = switch (wanted.get("op", "source")) {
            case "filter" -> kept == null ? table.filter((k, v) -> isEven(v)) : table.filter((k, v) -> isEven(v), kept);
            case "filter-not" ->
                kept == null ? table.filterNot((k, v) -> isEven(v)) : table.filterNot((k, v) -> isEven(v), kept);
            case "map" -> kept == null ? table.mapValues(v -> v + "!") : table.mapValues(v -> v + "!", kept);
            default -> table;
        };
        tell(derived, wanted);
    }

    private static boolean isEven(String value) {
        return value.equals("2") || value.equals("4");
    }

    /** below=group: grouped by its own key, where `-` is an old value and `+` a new one. */
    private static void tell(KTable<String, String> table, Wanted wanted) {
        if (wanted.get("below", "").equals("group")) {
            table.groupBy(KeyValue::pair, Grouped.with(Serdes.String(), Serdes.String()))
                .aggregate(() -> "0", ADDER, REMOVER).toStream().to("out");
        } else {
            table.toStream().to("out");
        }
    }

    /** op=count, reduce or aggregate; by=key, value, first (letter of the value), letters (of the key) or words; from, store. */
    private static void grouped(StreamsBuilder b, Wanted wanted) {
        KGroupedTable<String, String> rows = wanted.table(b, "in", "from")
            .groupBy((k, v) -> group(wanted.get("by", "value"), k, v), Grouped.with(Serdes.String(), Serdes.String()));
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept =
            wanted.kept(wanted.get("store", "cached"), "groups");
        switch (wanted.get("op", "aggregate")) {
            case "count" -> rows.count().mapValues(String::valueOf).toStream().to("out");
            case "reduce" -> rows.reduce((x, y) -> x + "+" + y, (x, y) -> x + "-" + y, kept).toStream().to("out");
            case "replace" -> rows.aggregate(() -> "", (k, v, a) -> a + v, (k, v, a) -> a.replace(v, ""), kept)
                .toStream().to("out");
            default -> rows.aggregate(() -> "0", ADDER, REMOVER, kept).toStream().to("out");
        }
    }

    private static KeyValue<String, String> group(String by, String key, String value) {
        return switch (by) {
            case "key" -> KeyValue.pair(key, value);
            case "value" -> KeyValue.pair(value, value);
            case "first" -> KeyValue.pair(value.substring(0, 1), value);
            case "letters" -> KeyValue.pair(key.substring(0, 1), key.substring(1, 2));
            default -> key.equals("null") ? KeyValue.pair(null, value) : KeyValue.pair(value, value);
        };
    }

    /** op=count, reduce or aggregate (where `x` gives none) of a stream, rekeyed=true: by value; store; below. */
    private static void aggregated(StreamsBuilder b, Wanted wanted) {
        KStream<String, String> stream = b.stream("in");
        Grouped<String, String> serdes = Grouped.with(Serdes.String(), Serdes.String());
        KGroupedStream<String, String> rows =
            wanted.has("rekeyed") ? stream.groupBy((k, v) -> v, serdes) : stream.groupByKey(serdes);
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept =
            wanted.kept(wanted.get("store", "cached"), "sums");
        switch (wanted.get("op", "aggregate")) {
            case "count" -> tell(rows.count().mapValues(String::valueOf), wanted);
            case "reduce" -> tell(rows.reduce((x, y) -> y.equals("x") ? null : x + "+" + y, kept), wanted);
            default -> tell(rows.aggregate(() -> "0", (k, v, a) -> v.equals("x") ? null : a + "+" + v, kept), wanted);
        }
    }

    /** until: ms; records, bytes: bounds; full=end or emit; of=counts (by value) or table; below. */
    private static void suppress(StreamsBuilder b, Wanted wanted) {
        KTable<String, String> table = wanted.table(b, "in", "from");
        if (wanted.get("of", "counts").equals("counts")) {
            KTable<String, Long> counts =
                table.groupBy((k, v) -> KeyValue.pair(v, k), Grouped.with(Serdes.String(), Serdes.String())).count();
            tell(counts.suppress(held(wanted)).mapValues(String::valueOf), wanted);
        } else {
            tell(table.suppress(held(wanted)), wanted);
        }
    }

    private static <K> Suppressed<K> held(Wanted wanted) {
        boolean ends = wanted.get("full", "emit").equals("end");
        if (wanted.has("records") && wanted.has("bytes")) {
            Suppressed.EagerBufferConfig both = Suppressed.BufferConfig.maxRecords(wanted.ms("records").toMillis())
                .withMaxBytes(wanted.ms("bytes").toMillis());
            return Suppressed.untilTimeLimit(wanted.ms("until"), ends ? both.shutDownWhenFull() : both);
        }
        Suppressed.EagerBufferConfig bounded =
            wanted.has("records") ? Suppressed.BufferConfig.maxRecords(wanted.ms("records").toMillis())
            : wanted.has("bytes") ? Suppressed.BufferConfig.maxBytes(wanted.ms("bytes").toMillis()) : null;
        return Suppressed.untilTimeLimit(wanted.ms("until"),
            bounded == null ? Suppressed.BufferConfig.unbounded() : ends ? bounded.shutDownWhenFull() : bounded);
    }

    /** Of `in` and `other`; rekeyed=true: `in` by value; once=true: `in` only; same=true: `in` twice; store; below. */
    private static void cogroup(StreamsBuilder b, Wanted wanted) {
        Grouped<String, String> serdes = Grouped.with(Serdes.String(), Serdes.String());
        KStream<String, String> stream = b.stream("in");
        KGroupedStream<String, String> rows = wanted.has("rekeyed")
            ? stream.groupBy((k, v) -> k, serdes) : stream.groupByKey(serdes);
        var cogrouped = rows.<String>cogroup(ADDER);
        if (wanted.has("same")) {
            cogrouped = cogrouped.cogroup(rows, REMOVER);
        } else if (!wanted.has("once")) {
            cogrouped = cogrouped.cogroup(b.<String, String>stream("other").groupByKey(serdes), REMOVER);
        }
        tell(cogrouped.aggregate(() -> "0", wanted.kept(wanted.get("store", "cached"), "sums")), wanted);
    }

    /** op=merge (of `l` and `r`), repartition, to-table, flat-map or flat-map-values (words between commas). */
    private static void stateless(StreamsBuilder b, Wanted wanted) {
        switch (wanted.get("op", "merge")) {
            case "merge" -> b.<String, String>stream("l").merge(b.stream("r")).to("out");
            case "merge-self" -> merged(b.stream("in")).to("out");
            case "repartition" -> b.<String, String>stream("in").repartition().to("out");
            case "to-table" -> tell(b.<String, String>stream("in").toTable(), wanted);
            case "to-table-rekeyed" -> tell(b.<String, String>stream("in").selectKey((k, v) -> v).toTable(), wanted);
            case "flat-map" -> b.<String, String>stream("in").flatMap(Published::words).to("out");
            default -> b.<String, String>stream("in").flatMapValues(v -> List.of(v.split(","))).to("out");
        }
    }

    private static KStream<String, String> merged(KStream<String, String> stream) {
        return stream.filter((k, v) -> isEven(v)).merge(stream.filterNot((k, v) -> isEven(v)).mapValues(v -> v + "!"));
    }

    private static List<KeyValue<String, String>> words(String key, String value) {
        List<KeyValue<String, String>> all = new ArrayList<>();
        for (String word : value.split(",")) {
            all.add(KeyValue.pair(word + all.size(), word));
        }
        return all;
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            Path path = Path.of(arguments[i]);
            System.out.println("== " + path.getFileName().toString().replace(".txt", ""));
            List<String> script = new ArrayList<>();
            for (String line : Files.readAllLines(path)) {
                if (line.startsWith("scenario ")) {
                    play(arguments[0] + "/" + path.getFileName(), script);
                    script.clear();
                }
                script.add(line);
            }
            play(arguments[0] + "/" + path.getFileName(), script);
        }
    }

    private static void play(String folder, List<String> script) {
        if (script.isEmpty() || !script.get(0).startsWith("scenario ")) {
            script.forEach(System.out::println);
            return;
        }
        Wanted wanted = new Wanted(script.get(0).split(" "));
        StreamsBuilder builder = new StreamsBuilder();
        PROGRAMS.get(wanted.program).accept(builder, wanted);
        Properties settings = settings(folder, wanted);
        TopologyTestDriver driver =
            new TopologyTestDriver(builder.build(settings), settings, Instant.ofEpochMilli(3));
        try {
            play(driver, script);
        } finally {
            close(driver);
        }
    }

    /** A topology that has failed cannot be closed in order. */
    private static void close(TopologyTestDriver driver) {
        try {
            driver.close();
        } catch (RuntimeException failed) {
            return;
        }
    }

    private static Properties settings(String folder, Wanted wanted) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "topology-test-driver"); // a buffer counts its topics' names
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        if (!wanted.program.equals("streams")) { // of key-value stores it is the same, and RocksDB takes its time
            settings.put(
                StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        }
        if (wanted.has("optimize")) {
            settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        }
        return settings;
    }

    private static void play(TopologyTestDriver driver, List<String> script) {
        TestOutputTopic<String, String> out =
            driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
        int number = 0;
        for (String line : script) {
            if (line.startsWith("->")) {
                continue;
            }
            System.out.println(line);
            String[] words = line.split(" ");
            if (!words[0].equals("pipe")) {
                continue;
            }
            try {
                driver.createInputTopic(words[1], new StringSerializer(), new StringSerializer())
                    .pipeInput(new TestRecord<>(read(words[2]), read(words[3]), header(number++),
                        Long.parseLong(words[4])));
            } catch (StreamsException failed) {
                System.out.println("-> fails");
                return;
            }
            for (TestRecord<String, String> record : out.readRecordsToList()) {
                System.out.println("-> " + told(record.key()) + " " + told(record.value()) + " " + record.timestamp()
                    + told(record.headers()));
            }
        }
    }

    private static String read(String word) {
        return word.equals("-") ? null : word;
    }

    private static RecordHeaders header(int number) {
        return (RecordHeaders) new RecordHeaders().add("n", String.valueOf(number).getBytes());
    }

    private static String told(Iterable<Header> headers) {
        StringBuilder all = new StringBuilder();
        for (Header header : headers) {
            all.append(" #").append(new String(header.value()));
        }
        return all.toString();
    }

    private static String told(String value) {
        return value == null ? "-" : value.isEmpty() ? "''" : value;
    }
}
