// Runs scripts over windowed aggregations by Kafka's TopologyTestDriver, and prints each with what comes out: the
// rules of windows in tests/streams/golden/windows, to which tests/streams/dsl/test_windows.py holds ours, and which
// it writes anew with REWRITE=1; it also plays random ones.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Windows.java FOLDER SCRIPT...
//
// State is kept in the folder. A script's line `windows KIND NAME=VALUE...` says what is tried: KIND is tumbling
// (size, grace), hopping (size, advance, grace), sliding (diff, grace), session (gap, grace) or unlimited (start),
// with op=count, reduce or aggregate (of strings, which shows the order of calls), cached=true or false,
// emit=update or close, interval, how often it emits by the wall clock, and perhaps retention. All times are ms.
// With cogroup=true a second stream is aggregated into the same table, with a `*` behind its values (aggregate and
// update only); kind plain, without windows, is for that. With below=group the table is grouped by key again, which shows
// the values before: `+NEW` and `-OLD`. With joined=inner, left or outer a second stream is aggregated in the same way,
// and its table joined. With suppress=close only a window's last result is told. nulls= lists, divided by commas, which
// functions return null: the initializer (init); aggregator or reducer (add) of values that end with 0; the merger
// (merge), where it is given an odd number of letters.
//
// `pipe KEY VALUE TIMESTAMP` pipes a record in, `-` is null, `pipe2` one into the second stream; `wall MS` moves the wall clock. Behind each step come
// the records written by it, as `-> KEY@START-END VALUE TIMESTAMP #N`, where N says which record's headers they have.
// Other lines are comments.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
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
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.test.TestRecord;

public class Windows {
    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            Path path = Path.of(arguments[i]);
            String name = path.getFileName().toString().replace(".txt", "");
            System.out.println("== " + name);
            List<String> script = Files.readAllLines(path);
            Wanted wanted = new Wanted(script);
            StreamsBuilder builder = new StreamsBuilder();
            KGroupedStream<String, String> grouped = builder.<String, String>stream("in")
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
            if (wanted.kind.equals("plain")) {
                cogrouped(builder, grouped, wanted)
                    .aggregate(wanted::begin, wanted.<String, KeyValueStore<Bytes, byte[]>>materialized())
                    .toStream()
                    .to("out");
                play(builder, arguments[0], wanted, script);
                continue;
            }
            KTable<Windowed<String>, String> table =
                wanted.get("cogroup", "").equals("true") ? together(builder, grouped, wanted)
                : windowed(grouped, wanted, "store");
            if (wanted.values.containsKey("joined")) {
                table = joined(table, windowed(other(builder), wanted, "store-2"), wanted.get("joined", ""));
            }
            if (wanted.get("suppress", "").equals("close")) {
                table = table.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()));
            }
            if (wanted.get("below", "").equals("group")) {
                table.groupBy((k, v) -> KeyValue.pair(k.key(), v))
                    .aggregate(() -> "", (k, v, a) -> a + "+" + v, (k, v, a) -> a + "-" + v)
                    .toStream()
                    .to("out");
            } else {
                table.toStream()
                    .map((k, v) -> KeyValue.pair(k.key() + "@" + k.window().start() + "-" + k.window().end(), v))
                    .to("out");
            }
            play(builder, arguments[0], wanted, script);
        }
    }

    private static void play(StreamsBuilder builder, String folder, Wanted wanted, List<String> script) {
        try (TopologyTestDriver driver =
                 new TopologyTestDriver(builder.build(), settings(folder, wanted), Instant.ofEpochMilli(3))) {
            play(driver, script);
        }
    }

    private static KGroupedStream<String, String> other(StreamsBuilder builder) {
        return builder.<String, String>stream("other").groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
    }

    private static KTable<Windowed<String>, String> joined(
        KTable<Windowed<String>, String> table, KTable<Windowed<String>, String> other, String kind) {
        return switch (kind) {
            case "inner" -> table.join(other, (x, y) -> x + "%" + y);
            case "left" -> table.leftJoin(other, (x, y) -> x + "%" + y);
            default -> table.outerJoin(other, (x, y) -> x + "%" + y);
        };
    }

    private static CogroupedKStream<String, String> cogrouped(
        StreamsBuilder builder, KGroupedStream<String, String> grouped, Wanted wanted) {
        return grouped.<String>cogroup((k, v, a) -> wanted.add(a, v))
            .cogroup(builder.<String, String>stream("other").groupByKey(), (k, v, a) -> wanted.add(a, v) + "*");
    }

    private static KTable<Windowed<String>, String> together(
        StreamsBuilder builder, KGroupedStream<String, String> grouped, Wanted wanted) {
        CogroupedKStream<String, String> both = cogrouped(builder, grouped, wanted);
        Duration grace = wanted.ms("grace");
        switch (wanted.kind) {
            case "tumbling":
                return both.windowedBy(TimeWindows.ofSizeAndGrace(wanted.ms("size"), grace)).aggregate(wanted::begin,
                    wanted.<String, WindowStore<Bytes, byte[]>>materialized());
            case "sliding":
                return both.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(wanted.ms("diff"), grace))
                    .aggregate(wanted::begin, wanted.<String, WindowStore<Bytes, byte[]>>materialized());
            default:
                return both.windowedBy(SessionWindows.ofInactivityGapAndGrace(wanted.ms("gap"), grace))
                    .aggregate(wanted::begin, (k, x, y) -> wanted.merge(x, y),
                        wanted.<String, SessionStore<Bytes, byte[]>>materialized());
        }
    }

    /** The line that says what is tried. */
    private static class Wanted {
        String kind = "";
        final Map<String, String> values = new HashMap<>();

        Wanted(List<String> script) {
            for (String line : script) {
                String[] words = line.split(" ");
                if (words[0].equals("windows")) {
                    kind = words[1];
                    for (int i = 2; i < words.length; i++) {
                        values.put(words[i].split("=")[0], words[i].split("=")[1]);
                    }
                }
            }
        }

        String get(String name, String otherwise) {
            return values.getOrDefault(name, otherwise);
        }

        Duration ms(String name) {
            return Duration.ofMillis(Long.parseLong(get(name, "0")));
        }

        private boolean isNull(String function) {
            return List.of(get("nulls", "").split(",")).contains(function);
        }

        String begin() {
            return isNull("init") ? null : "";
        }

        String add(String result, String value) {
            return isNull("add") && value != null && value.endsWith("0") ? null : result + value;
        }

        String merge(String one, String other) {
            return isNull("merge") && (one + other).length() % 2 == 1 ? null : one + "|" + other;
        }

        EmitStrategy emit() {
            return get("emit", "update").equals("close") ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
        }

        <V, S extends StateStore> Materialized<String, V, S> materialized() {
            return materialized("store");
        }

        <V, S extends StateStore> Materialized<String, V, S> materialized(String name) {
            Materialized<String, V, S> store = Materialized.as(name);
            if (values.containsKey("retention")) {
                store.withRetention(ms("retention"));
            }
            return get("cached", "true").equals("true") ? store.withCachingEnabled() : store.withCachingDisabled();
        }
    }

    private static TimeWindowedKStream<String, String> windowed(KGroupedStream<String, String> grouped, Wanted wanted) {
        Duration grace = wanted.ms("grace");
        switch (wanted.kind) {
            case "tumbling":
                return grouped.windowedBy(TimeWindows.ofSizeAndGrace(wanted.ms("size"), grace));
            case "hopping":
                return grouped.windowedBy(
                    TimeWindows.ofSizeAndGrace(wanted.ms("size"), grace).advanceBy(wanted.ms("advance")));
            case "sliding":
                return grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(wanted.ms("diff"), grace));
            default:
                return grouped.windowedBy(
                    UnlimitedWindows.of().startOn(Instant.ofEpochMilli(wanted.ms("start").toMillis())));
        }
    }

    private static KTable<Windowed<String>, String> windowed(
        KGroupedStream<String, String> grouped, Wanted wanted, String name) {
        return wanted.kind.equals("session") ? bySession(grouped, wanted, name) : byTime(grouped, wanted, name);
    }

    private static KTable<Windowed<String>, String> byTime(
        KGroupedStream<String, String> grouped, Wanted wanted, String name) {
        TimeWindowedKStream<String, String> windows = windowed(grouped, wanted).emitStrategy(wanted.emit());
        switch (wanted.get("op", "aggregate")) {
            case "count":
                return windows.count(wanted.<Long, WindowStore<Bytes, byte[]>>materialized(name))
                    .mapValues(String::valueOf);
            case "reduce":
                return windows.reduce(wanted::add, wanted.<String, WindowStore<Bytes, byte[]>>materialized(name));
            default:
                return windows.aggregate(wanted::begin, (k, v, a) -> wanted.add(a, v),
                    wanted.<String, WindowStore<Bytes, byte[]>>materialized(name).withValueSerde(Serdes.String()));
        }
    }

    private static KTable<Windowed<String>, String> bySession(
        KGroupedStream<String, String> grouped, Wanted wanted, String name) {
        SessionWindowedKStream<String, String> windows = grouped
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(wanted.ms("gap"), wanted.ms("grace")))
            .emitStrategy(wanted.emit());
        switch (wanted.get("op", "aggregate")) {
            case "count":
                return windows.count(wanted.<Long, SessionStore<Bytes, byte[]>>materialized(name))
                    .mapValues(String::valueOf);
            case "reduce":
                return windows.reduce(wanted::add, wanted.<String, SessionStore<Bytes, byte[]>>materialized(name));
            default:
                return windows.aggregate(wanted::begin, (k, v, a) -> wanted.add(a, v), (k, x, y) -> wanted.merge(x, y),
                    wanted.<String, SessionStore<Bytes, byte[]>>materialized(name).withValueSerde(Serdes.String()));
        }
    }

    private static Properties settings(String folder, Wanted wanted) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        if (wanted.values.containsKey("interval")) {
            settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION,
                Long.parseLong(wanted.get("interval", "")));
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
            if (words[0].startsWith("pipe")) {
                driver.createInputTopic(words[0].equals("pipe") ? "in" : "other", new StringSerializer(), new StringSerializer())
                    .pipeInput(new TestRecord<>(read(words[1]), read(words[2]), header(number++),
                        Long.parseLong(words[3])));
            } else if (words[0].equals("wall")) {
                driver.advanceWallClockTime(Duration.ofMillis(Long.parseLong(words[1])));
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

    private static Headers header(int number) {
        return new RecordHeaders().add("n", String.valueOf(number).getBytes());
    }

    private static String told(Headers headers) {
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
