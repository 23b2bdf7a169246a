// Runs scripts by Kafka's TopologyTestDriver, and prints each with what comes out: versioned stores and tables in
// tests/streams/golden/versioned, to which tests/streams/dsl/test_versioned.py holds ours, and which it writes anew with
// REWRITE=1.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Versioned.java FOLDER SCRIPT...
//
// State is kept in the folder. A script's name is that of its program below, but for what follows a dot.
// `pipe TOPIC KEY VALUE TIMESTAMP` pipes a record in, `-` is null. Behind each step come the records written by it, as
// `-> KEY VALUE TIMESTAMP`, then, in the last lines, the topology's description, each line behind a `|`. Of the store
// `versions`, `put KEY VALUE TIMESTAMP` and `delete KEY TIMESTAMP` tell what they return, `get KEY` and
// `get KEY TIMESTAMP` what they find, and `versions KEY FROM TO ORDER` what a MultiVersionedKeyQuery does. Other lines
// are comments.

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
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.streams.test.TestRecord;

public class Versioned {
    private static final Map<String, Consumer<StreamsBuilder>> PROGRAMS = new TreeMap<>();
    private static final ValueJoiner<String, String, String> JOINER = (x, y) -> x + "+" + y;

    static {
        PROGRAMS.put("store", b -> table(b, "in", "versions"));
        PROGRAMS.put("table", b -> table(b, "in", "versions").toStream().to("out"));
        PROGRAMS.put("to-table",
            b -> b.<String, String>stream("in").toTable(versioned("versions")).toStream().to("out"));
        PROGRAMS.put("derived", b -> derived(table(b, "in", "versions")).toStream().to("out"));
        PROGRAMS.put("derived-kept", b -> table(b, "in", "versions")
            .filter((k, v) -> !v.startsWith("x"), versioned("kept"))
            .mapValues(v -> v + "!", Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("mapped"))
            .toStream().to("out"));
        PROGRAMS.put("kept-versions", b -> b.<String, String>table("in")
            .filter((k, v) -> !v.startsWith("x"), versioned("kept")).mapValues(v -> v + "!").toStream().to("out"));
        PROGRAMS.put("grouped", b -> grouped(derived(table(b, "in", "versions")), Materialized.as("sums")));
        PROGRAMS.put("grouped-versions", b -> grouped(b.table("in"), versioned("sums")));
        PROGRAMS.put("reduce", b -> b.<String, String>stream("in").groupByKey()
            .reduce((x, y) -> y.startsWith("x") ? null : x + y, versioned("sums")).toStream().to("out"));
        PROGRAMS.put("reduce-told", b -> b.<String, String>stream("in").groupByKey()
            .reduce((x, y) -> y.startsWith("x") ? null : x + y, versioned("sums"))
            .filter((k, v) -> v.length() % 3 != 0).groupBy((k, v) -> KeyValue.pair("all", v))
            .aggregate(() -> "", (k, v, sum) -> sum + "+" + v, (k, v, sum) -> sum + "-" + v)
            .toStream().to("out"));
        for (String kind : List.of("inner", "left", "outer")) {
            PROGRAMS.put("table-" + kind + "-join", b -> joined(
                table(b, "l", "ls"), table(b, "r", "rs"), kind, null).toStream().to("out"));
            PROGRAMS.put("table-" + kind + "-join-one", b -> joined(
                derived(table(b, "l", "ls")), b.table("r"), kind, versioned("joined")).toStream().to("out"));
        }
        PROGRAMS.put("foreign-join", b -> table(b, "l", "ls")
            .join(table(b, "r", "rs"), v -> v.substring(1), JOINER).toStream().to("out"));
        PROGRAMS.put("foreign-left-join", b -> table(b, "l", "ls")
            .leftJoin(table(b, "r", "rs"), v -> v.substring(1), JOINER, versioned("joined")).toStream().to("out"));
        PROGRAMS.put("stream-join", b -> stream(b).join(table(b, "t", "ts"), JOINER).to("out"));
        PROGRAMS.put("stream-left-join", b -> stream(b).leftJoin(derived(table(b, "t", "ts")), JOINER).to("out"));
        PROGRAMS.put("stream-transformed-join", b -> stream(b).leftJoin(
            table(b, "t", "ts").transformValues(Lengths::new), JOINER).to("out"));
        PROGRAMS.put("stream-join-unversioned", b -> stream(b).leftJoin(
            joined(table(b, "t", "ts"), table(b, "r", "rs"), "left", null), JOINER).to("out"));
        PROGRAMS.put("stream-join-grace", b -> stream(b).join(table(b, "t", "ts"), JOINER, grace(5)).to("out"));
        PROGRAMS.put("stream-left-join-grace", b -> stream(b).leftJoin(
            derived(table(b, "t", "ts")), JOINER, grace(10)).to("out"));
        PROGRAMS.put("stream-join-no-grace", b -> stream(b).join(table(b, "t", "ts"), JOINER, grace(0)).to("out"));
        PROGRAMS.put("stream-join-grace-named", b -> stream(b).selectKey((k, v) -> v.substring(0, 1))
            .leftJoin(table(b, "t", "ts"), JOINER, grace(5).withName("named")).to("out"));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> versioned(String name) {
        return Materialized.<String, String>as(
                Stores.persistentVersionedKeyValueStore(name, Duration.ofMillis(10), Duration.ofMillis(3)))
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String());
    }

    private static KTable<String, String> table(StreamsBuilder b, String topic, String store) {
        return b.table(topic, versioned(store));
    }

    private static KStream<String, String> stream(StreamsBuilder b) {
        return b.stream("in");
    }

    private static KTable<String, String> derived(KTable<String, String> table) {
        return table.filter((k, v) -> !v.startsWith("x")).mapValues(v -> v + "!");
    }

    private static Joined<String, String, String> grace(long ms) {
        return Joined.<String, String, String>with(Serdes.String(), Serdes.String(), Serdes.String())
            .withGracePeriod(Duration.ofMillis(ms));
    }

    private static void grouped(
            KTable<String, String> table, Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        table.groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v), Grouped.with(Serdes.String(), Serdes.String()))
            .aggregate(() -> "", (k, v, sum) -> sum + "+" + v, (k, v, sum) -> sum + "-" + v, kept)
            .toStream().to("out");
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

    /** As `Lengths` in tests/streams/dsl/test_versioned.py. */
    private static class Lengths implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(ProcessorContext context) {
        }

        @Override
        public String transform(String key, String value) {
            return value == null ? "none" : value + value.length();
        }

        @Override
        public void close() {
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            Path path = Path.of(arguments[i]);
            String name = path.getFileName().toString().replace(".txt", "");
            System.out.println("== " + name);
            StreamsBuilder builder = new StreamsBuilder();
            PROGRAMS.get(name.split("\\.")[0]).accept(builder);
            Topology topology = builder.build();
            try (TopologyTestDriver driver =
                     new TopologyTestDriver(topology, settings(arguments[0]), Instant.ofEpochMilli(3))) {
                play(driver, path);
            }
            topology.describe().toString().lines().forEach(line -> System.out.println("| " + line));
        }
    }

    private static Properties settings(String folder) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        return settings;
    }

    private static void play(TopologyTestDriver driver, Path script) throws Exception {
        VersionedKeyValueStore<String, String> store = driver.getVersionedKeyValueStore("versions");
        for (String line : Files.readAllLines(script)) {
            if (line.startsWith("->") || line.startsWith("|")) {
                continue;
            }
            System.out.println(line);
            String[] words = line.split(" ");
            switch (words[0]) {
                case "pipe" -> pipe(driver, words);
                case "put" -> System.out.println(
                    "-> " + store.put(words[1], read(words[2]), Long.parseLong(words[3])));
                case "delete" -> System.out.println("-> " + told(store.delete(words[1], Long.parseLong(words[2]))));
                case "get" -> System.out.println("-> "
                    + told(words.length == 2 ? store.get(words[1]) : store.get(words[1], Long.parseLong(words[2]))));
                case "versions" -> versions(store, words);
                default -> { }
            }
        }
    }

    private static void pipe(TopologyTestDriver driver, String[] words) {
        driver.createInputTopic(words[1], new StringSerializer(), new StringSerializer())
            .pipeInput(read(words[2]), read(words[3]), Long.parseLong(words[4]));
        if (!driver.producedTopicNames().contains("out")) {
            return;
        }
        TestOutputTopic<String, String> out =
            driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
        for (TestRecord<String, String> record : out.readRecordsToList()) {
            System.out.println("-> " + told(record.key()) + " " + told(record.value()) + " " + record.timestamp());
        }
    }

    private static void versions(VersionedKeyValueStore<String, String> store, String[] words) {
        MultiVersionedKeyQuery<String, String> query = MultiVersionedKeyQuery.<String, String>withKey(words[1])
            .fromTime(words[2].equals("-") ? null : Instant.ofEpochMilli(Long.parseLong(words[2])))
            .toTime(words[3].equals("-") ? null : Instant.ofEpochMilli(Long.parseLong(words[3])));
        query = words[4].equals("ascending") ? query.withAscendingTimestamps()
            : words[4].equals("descending") ? query.withDescendingTimestamps() : query;
        try (VersionedRecordIterator<String> found =
                 store.query(query, PositionBound.unbounded(), new QueryConfig(false)).getResult()) {
            while (found.hasNext()) {
                VersionedRecord<String> record = found.next();
                System.out.println("-> " + told(record) + " " + record.validTo().map(String::valueOf).orElse("-"));
            }
        }
    }

    private static String told(VersionedRecord<String> record) {
        return record == null ? "-" : record.value() + " " + record.timestamp();
    }

    private static String read(String word) {
        return word.equals("-") ? null : word;
    }

    private static String told(String value) {
        return value == null ? "-" : value;
    }
}
