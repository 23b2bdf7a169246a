// Runs plans by Kafka's TopologyTestDriver: those of tests/streams/differential, one a line on stdin, where the
// format of what is printed for each, up to a line with a dot, is told (runs.py), and what a plan is (plan.py).
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Differential.java FOLDER
//
// State is kept in memory, but for joins of streams: there RocksDB, the default, forgets by other rules.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiFunction;
import java.util.function.BiPredicate;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.ValueTransformerWithKeySupplier;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.RecordContext;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.test.TestRecord;

@SuppressWarnings({"unchecked", "rawtypes"})
public class Differential {
    private static final Duration RETENTION = Duration.ofMillis(10_000_000);
    private static final Duration SEGMENT = Duration.ofMillis(5);
    private static final String APPLICATION = "app";
    private static final Pattern FULL = Pattern.compile("Currently \\[(\\d+)/\\d+\\] records and \\[(\\d+)/\\d+\\] bytes");
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    // What plans pick by name: as tests/streams/differential/functions.py.

    private static final Map<String, BiPredicate<Object, Object>> PREDICATES = Map.of(
        "odd", (k, v) -> text(v).length() % 2 == 1,
        "low", (k, v) -> text(k).compareTo("b") < 0,
        "full", (k, v) -> v != null,
        "known", (k, v) -> k != null,
        "no_x", (k, v) -> !hasX(v));

    private static final Map<String, Function<Object, Object>> MAPPERS = Map.of(
        "text", Differential::text,
        "shout", v -> v == null ? null : cut(text(v) + "!"),
        "drop_x", v -> hasX(v) ? null : cut(text(v)));

    private static final Map<String, BiFunction<Object, Object, KeyValue<Object, Object>>> PAIRS = Map.of(
        "swap", (k, v) -> KeyValue.pair(v == null ? null : first(v), cut(text(k))),
        "keep", (k, v) -> KeyValue.pair(cut(text(k)), v == null ? null : cut(text(v) + "~")));

    private static final Map<String, BiFunction<Object, Object, List<KeyValue<Object, Object>>>> LISTS = Map.of(
        "twice", (k, v) -> List.of(
            KeyValue.pair(cut(text(k)), cut(text(v) + "1")), KeyValue.pair(first(v), cut(text(v) + "2"))),
        "some", (k, v) -> text(v).length() % 2 == 1
            ? List.of()
            : List.of(KeyValue.pair(cut(text(k)), v == null ? null : text(v))));

    private static final Map<String, Function<Object, List<Object>>> VALUE_LISTS = Map.of(
        "halves", v -> List.of(cut(text(v)), first(v)),
        "no_x", v -> {
            List<Object> values = new ArrayList<>();
            if (!hasX(v)) {
                values.add(v == null ? null : cut(text(v)));
            }
            return values;
        });

    private static final Map<String, BiFunction<Object, Object, Object>> SELECTORS = Map.of(
        "first", (k, v) -> first(v),
        "not_b", (k, v) -> text(k).equals("b") ? null : cut(text(k)));

    private static final Map<String, BiFunction<Object, Object, Object>> REDUCERS = Map.of(
        "concat", (a, b) -> cut(text(a) + text(b)),
        "last", (a, b) -> b,
        "forget_x", (a, b) -> hasX(b) ? null : cut(text(a) + text(b)));

    private static final Map<String, Aggregator<Object, Object, Object>> AGGREGATORS = Map.of(
        "append", (k, v, a) -> cut(text(a) + text(v)),
        "forget_x", (k, v, a) -> hasX(v) ? null : cut(text(a) + text(k)));

    private static final Map<String, BiFunction<Object, Object, Object>> UNDOERS = Map.of(
        "minus", (a, b) -> cut(text(a) + "-" + text(b)),
        "forget_x", (a, b) -> hasX(b) ? null : cut(text(b) + text(a)));

    private static final Map<String, BiFunction<Object, Object, Object>> JOINERS = Map.of(
        "plus", (a, b) -> cut(text(a) + "+" + text(b)),
        "drop_x", (a, b) -> hasX(a) ? null : cut(text(b) + "+" + text(a)));

    private static final Map<String, BiFunction<Object, Object, Object>> FOREIGN_KEYS = Map.of(
        "first", (k, v) -> first(v),
        "key", (k, v) -> k,
        "no_x", (k, v) -> hasX(v) ? null : first(v));

    private static String text(Object value) {
        if (value instanceof Windowed) {
            Windowed<?> windowed = (Windowed<?>) value;
            return text(windowed.key()) + "@" + windowed.window().start();
        }
        return value == null ? "-" : value.toString();
    }

    private static String cut(String value) {
        return value.substring(Math.max(0, value.length() - 12));
    }

    private static String first(Object value) {
        return text(value).substring(0, Math.min(1, text(value).length()));
    }

    private static boolean hasX(Object value) {
        return text(value).contains("x");
    }

    // The operators: as tests/streams/differential/operators.py.

    private interface Operator {
        Object make(Building b, Step s);
    }

    private static final Map<String, Operator> OPERATORS = new HashMap<>();

    static {
        OPERATORS.put("stream", (b, s) -> b.builder.stream(s.topics(), s.consumed()));
        OPERATORS.put("table", Differential::table);
        OPERATORS.put("filter", (b, s) -> s.unnamed()
            ? s.stream().filter(PREDICATES.get(s.f())::test)
            : s.stream().filter(PREDICATES.get(s.f())::test, s.named()));
        OPERATORS.put("filter_not", (b, s) -> s.unnamed()
            ? s.stream().filterNot(PREDICATES.get(s.f())::test)
            : s.stream().filterNot(PREDICATES.get(s.f())::test, s.named()));
        OPERATORS.put("map", (b, s) -> s.unnamed()
            ? s.stream().map(PAIRS.get(s.f())::apply)
            : s.stream().map(PAIRS.get(s.f())::apply, s.named()));
        OPERATORS.put("map_values", (b, s) -> s.unnamed()
            ? s.stream().mapValues(v -> MAPPERS.get(s.f()).apply(v))
            : s.stream().mapValues(v -> MAPPERS.get(s.f()).apply(v), s.named()));
        OPERATORS.put("flat_map", (b, s) -> s.unnamed()
            ? s.stream().flatMap(LISTS.get(s.f())::apply)
            : s.stream().flatMap(LISTS.get(s.f())::apply, s.named()));
        OPERATORS.put("flat_map_values", (b, s) -> s.unnamed()
            ? s.stream().flatMapValues(v -> VALUE_LISTS.get(s.f()).apply(v))
            : s.stream().flatMapValues(v -> VALUE_LISTS.get(s.f()).apply(v), s.named()));
        OPERATORS.put("select_key", (b, s) -> s.unnamed()
            ? s.stream().selectKey(SELECTORS.get(s.f())::apply)
            : s.stream().selectKey(SELECTORS.get(s.f())::apply, s.named()));
        OPERATORS.put("peek", (b, s) -> s.unnamed()
            ? s.stream().peek((k, v) -> { })
            : s.stream().peek((k, v) -> { }, s.named()));
        OPERATORS.put("merge", (b, s) -> s.unnamed()
            ? s.stream().merge(s.above(1))
            : s.stream().merge(s.above(1), s.named()));
        OPERATORS.put("process", Differential::process);
        OPERATORS.put("join", (b, s) ->
            s.stream().join(s.<KTable<Object, Object>>above(1), JOINERS.get(s.f())::apply, s.joined()));
        OPERATORS.put("left_join", (b, s) ->
            s.stream().leftJoin(s.<KTable<Object, Object>>above(1), JOINERS.get(s.f())::apply, s.joined()));
        OPERATORS.put("foreign_join", (b, s) -> joinForeign(s, false));
        OPERATORS.put("foreign_left_join", (b, s) -> joinForeign(s, true));
        OPERATORS.put("group_by_key", (b, s) -> s.stream().groupByKey(s.grouped()));
        OPERATORS.put("group_by", (b, s) -> s.stream().groupBy(SELECTORS.get(s.f())::apply, s.grouped()));
        OPERATORS.put("to_table", (b, s) -> s.unnamed()
            ? s.stream().toTable(s.<KeyValueStore<Bytes, byte[]>>store(true))
            : s.stream().toTable(s.named(), s.<KeyValueStore<Bytes, byte[]>>store(true)));
        OPERATORS.put("windowed_by", (b, s) -> windowed(s));
        OPERATORS.put("sessions_by", (b, s) -> sessions(s));
        OPERATORS.put("session_count", (b, s) -> countSessions(s));
        OPERATORS.put("session_reduce", (b, s) -> reduceSessions(s));
        OPERATORS.put("session_aggregate", (b, s) -> aggregateSessions(s));
        OPERATORS.put("table_join", (b, s) -> joinTables(s, KTable::join, KTable::join, KTable::join, KTable::join));
        OPERATORS.put("table_left_join", (b, s) ->
            joinTables(s, KTable::leftJoin, KTable::leftJoin, KTable::leftJoin, KTable::leftJoin));
        OPERATORS.put("table_outer_join", (b, s) ->
            joinTables(s, KTable::outerJoin, KTable::outerJoin, KTable::outerJoin, KTable::outerJoin));
        OPERATORS.put("count", (b, s) -> count(s));
        OPERATORS.put("reduce", (b, s) -> reduce(s));
        OPERATORS.put("aggregate", (b, s) -> aggregate(s));
        OPERATORS.put("windowed_count", (b, s) -> countWindows(s));
        OPERATORS.put("windowed_reduce", (b, s) -> reduceWindows(s));
        OPERATORS.put("windowed_aggregate", (b, s) -> aggregateWindows(s));
        OPERATORS.put("table_filter", (b, s) -> filterTable(s));
        OPERATORS.put("table_filter_not", (b, s) -> filterNotTable(s));
        OPERATORS.put("table_map_values", (b, s) -> mapTable(s));
        OPERATORS.put("to_stream", (b, s) -> s.unnamed() ? s.table().toStream() : s.table().toStream(s.named()));
        OPERATORS.put("to_stream_by", (b, s) -> s.unnamed()
            ? s.table().toStream(SELECTORS.get(s.f())::apply)
            : s.table().toStream(SELECTORS.get(s.f())::apply, s.named()));
        OPERATORS.put("repartition", (b, s) -> s.stream().repartition(s.repartitioned()));
        OPERATORS.put("stream_join", (b, s) ->
            s.stream().join(s.<KStream<Object, Object>>above(1), JOINERS.get(s.f())::apply, s.windows(), s.streamJoined()));
        OPERATORS.put("stream_left_join", (b, s) ->
            s.stream().leftJoin(s.<KStream<Object, Object>>above(1), JOINERS.get(s.f())::apply, s.windows(), s.streamJoined()));
        OPERATORS.put("stream_outer_join", (b, s) ->
            s.stream().outerJoin(s.<KStream<Object, Object>>above(1), JOINERS.get(s.f())::apply, s.windows(), s.streamJoined()));
        OPERATORS.put("table_group_by", (b, s) -> s.table().groupBy(PAIRS.get(s.f())::apply, s.grouped()));
        OPERATORS.put("count_rows", (b, s) -> countRows(s));
        OPERATORS.put("reduce_rows", (b, s) -> reduceRows(s));
        OPERATORS.put("aggregate_rows", (b, s) -> aggregateRows(s));
        OPERATORS.put("suppress", (b, s) -> suppress(s));
        OPERATORS.put("table_transform_values", (b, s) -> transformTable(s));
        OPERATORS.put("process_values", (b, s) -> s.unnamed()
            ? s.stream().processValues(Numberer::new)
            : s.stream().processValues(Numberer::new, s.named()));
        OPERATORS.put("split", (b, s) -> split(s));
        OPERATORS.put("branch", (b, s) -> s.<Map<String, KStream<Object, Object>>>above(0).entrySet().stream()
            .filter(each -> each.getKey().endsWith(s.node.get("branch").asText())).findFirst().get().getValue());
        OPERATORS.put("cogroup", (b, s) -> s.<KGroupedStream<Object, Object>>above(0)
            .cogroup(AGGREGATORS.get(s.f())).cogroup(s.above(1), AGGREGATORS.get(s.node.get("second").asText())));
        OPERATORS.put("cogroup_windowed_by", (b, s) -> cogroupWindowed(s));
        OPERATORS.put("cogroup_sessions_by", (b, s) ->
            s.<CogroupedKStream<Object, Object>>above(0).windowedBy(sessionWindows(s)));
        OPERATORS.put("cogroup_aggregate", (b, s) -> aggregateCogroup(s));
        OPERATORS.put("cogroup_windowed_aggregate", (b, s) -> aggregateCogroupWindows(s));
        OPERATORS.put("cogroup_session_aggregate", (b, s) -> aggregateCogroupSessions(s));
        OPERATORS.put("to_chosen", (b, s) -> {
            s.stream().to(new Chooser(s), s.produced());
            return null;
        });
        OPERATORS.put("to", (b, s) -> {
            s.stream().to(s.topics().get(0), s.produced());
            return null;
        });
    }

    private static Object table(Building b, Step s) {
        return s.hasStore()
            ? b.builder.table(s.topics().get(0), s.consumed(), s.<KeyValueStore<Bytes, byte[]>>store(true))
            : b.builder.table(s.topics().get(0), s.consumed());
    }

    private static Object joinForeign(Step s, boolean left) {
        KTable<Object, Object> other = s.above(1);
        BiFunction<Object, Object, Object> key = FOREIGN_KEYS.get(s.node.get("foreign").asText());
        ValueJoiner<Object, Object, Object> f = JOINERS.get(s.f())::apply;
        TableJoined<Object, Object> joined = TableJoined.as(s.name());
        if (!s.hasStore()) {
            return left ? s.table().leftJoin(other, key, f, joined) : s.table().join(other, key, f, joined);
        }
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store = s.store(true);
        return left ? s.table().leftJoin(other, key, f, joined, store) : s.table().join(other, key, f, joined, store);
    }

    private static Object count(Step s) {
        KGroupedStream<Object, Object> group = s.above(0);
        Object table = s.hasStore()
            ? s.unnamed()
                ? group.count((Materialized<Object, Long, KeyValueStore<Bytes, byte[]>>) s.anyStore())
                : group.count(s.named(), (Materialized<Object, Long, KeyValueStore<Bytes, byte[]>>) s.anyStore())
            : s.unnamed() ? group.count() : group.count(s.named());
        return table;
    }

    private static Object countWindows(Step s) {
        TimeWindowedKStream<Object, Object> group = s.above(0);
        Object table = s.hasStore()
            ? s.unnamed()
                ? group.count((Materialized<Object, Long, WindowStore<Bytes, byte[]>>) s.anyStore())
                : group.count(s.named(), (Materialized<Object, Long, WindowStore<Bytes, byte[]>>) s.anyStore())
            : s.unnamed() ? group.count() : group.count(s.named());
        return table;
    }

    private static Object reduce(Step s) {
        KGroupedStream<Object, Object> group = s.above(0);
        BiFunction<Object, Object, Object> f = REDUCERS.get(s.f());
        return s.unnamed()
            ? s.hasStore()
                ? group.reduce(f::apply, s.<KeyValueStore<Bytes, byte[]>>store(false))
                : group.reduce(f::apply)
            : group.reduce(f::apply, s.named(), s.<KeyValueStore<Bytes, byte[]>>store(false));
    }

    private static Object reduceWindows(Step s) {
        TimeWindowedKStream<Object, Object> group = s.above(0);
        BiFunction<Object, Object, Object> f = REDUCERS.get(s.f());
        return s.hasStore()
            ? s.unnamed()
                ? group.reduce(f::apply, s.<WindowStore<Bytes, byte[]>>store(false))
                : group.reduce(f::apply, s.named(), s.<WindowStore<Bytes, byte[]>>store(false))
            : s.unnamed() ? group.reduce(f::apply) : group.reduce(f::apply, s.named());
    }

    private static Object aggregate(Step s) {
        KGroupedStream<Object, Object> group = s.above(0);
        Aggregator<Object, Object, Object> f = AGGREGATORS.get(s.f());
        return s.unnamed()
            ? s.hasStore()
                ? group.aggregate(() -> "i", f, s.<KeyValueStore<Bytes, byte[]>>store(false))
                : group.aggregate(() -> "i", f)
            : group.aggregate(() -> "i", f, s.named(), s.<KeyValueStore<Bytes, byte[]>>store(false));
    }

    private static Object aggregateWindows(Step s) {
        TimeWindowedKStream<Object, Object> group = s.above(0);
        Aggregator<Object, Object, Object> f = AGGREGATORS.get(s.f());
        return s.hasStore()
            ? s.unnamed()
                ? group.aggregate(() -> "i", f, s.<WindowStore<Bytes, byte[]>>store(false))
                : group.aggregate(() -> "i", f, s.named(), s.<WindowStore<Bytes, byte[]>>store(false))
            : s.unnamed() ? group.aggregate(() -> "i", f) : group.aggregate(() -> "i", f, s.named());
    }

    private static Object filterTable(Step s) {
        BiPredicate<Object, Object> f = PREDICATES.get(s.f());
        return s.hasStore()
            ? s.unnamed()
                ? s.table().filter(f::test, s.<KeyValueStore<Bytes, byte[]>>store(true))
                : s.table().filter(f::test, s.named(), s.<KeyValueStore<Bytes, byte[]>>store(true))
            : s.unnamed() ? s.table().filter(f::test) : s.table().filter(f::test, s.named());
    }

    private static Object filterNotTable(Step s) {
        BiPredicate<Object, Object> f = PREDICATES.get(s.f());
        return s.hasStore()
            ? s.unnamed()
                ? s.table().filterNot(f::test, s.<KeyValueStore<Bytes, byte[]>>store(true))
                : s.table().filterNot(f::test, s.named(), s.<KeyValueStore<Bytes, byte[]>>store(true))
            : s.unnamed() ? s.table().filterNot(f::test) : s.table().filterNot(f::test, s.named());
    }

    private static Object mapTable(Step s) {
        Function<Object, Object> f = MAPPERS.get(s.f());
        return s.hasStore()
            ? s.unnamed()
                ? s.table().mapValues(v -> f.apply(v), s.<KeyValueStore<Bytes, byte[]>>store(true))
                : s.table().mapValues(v -> f.apply(v), s.named(), s.<KeyValueStore<Bytes, byte[]>>store(true))
            : s.unnamed() ? s.table().mapValues(v -> f.apply(v)) : s.table().mapValues(v -> f.apply(v), s.named());
    }

    private static Object transformTable(Step s) {
        ValueTransformerWithKeySupplier<Object, Object, Object> f = () -> new Transformer(s.f());
        return s.hasStore()
            ? s.unnamed()
                ? s.table().transformValues(f, s.<KeyValueStore<Bytes, byte[]>>store(true))
                : s.table().transformValues(f, s.<KeyValueStore<Bytes, byte[]>>store(true), s.named())
            : s.unnamed() ? s.table().transformValues(f) : s.table().transformValues(f, s.named());
    }

    private static Object split(Step s) {
        boolean named = s.node.get("named").asBoolean();
        BranchedKStream<Object, Object> split = s.unnamed() ? s.stream().split() : s.stream().split(s.named());
        split = named
            ? split.branch(PREDICATES.get(s.f())::test, Branched.as("-x"))
            : split.branch(PREDICATES.get(s.f())::test);
        return !s.node.get("rest").asBoolean() ? split.noDefaultBranch()
            : named ? split.defaultBranch(Branched.as("-rest"))
            : split.defaultBranch();
    }

    private static Object cogroupWindowed(Step s) {
        CogroupedKStream<Object, Object> group = s.above(0);
        switch (s.node.get("windows").asText()) {
            case "sliding": return group.windowedBy(slidingWindows(s));
            case "unlimited": return group.windowedBy(unlimitedWindows(s));
            default: return group.windowedBy(timeWindows(s));
        }
    }

    private static Object aggregateCogroup(Step s) {
        CogroupedKStream<Object, Object> group = s.above(0);
        return s.hasStore()
            ? s.unnamed()
                ? group.aggregate(() -> "i", s.<KeyValueStore<Bytes, byte[]>>store(false))
                : group.aggregate(() -> "i", s.named(), s.<KeyValueStore<Bytes, byte[]>>store(false))
            : s.unnamed() ? group.aggregate(() -> "i") : group.aggregate(() -> "i", s.named());
    }

    private static Object aggregateCogroupWindows(Step s) {
        TimeWindowedCogroupedKStream<Object, Object> group = s.above(0);
        return s.hasStore()
            ? s.unnamed()
                ? group.aggregate(() -> "i", s.<WindowStore<Bytes, byte[]>>store(false))
                : group.aggregate(() -> "i", s.named(), s.<WindowStore<Bytes, byte[]>>store(false))
            : s.unnamed() ? group.aggregate(() -> "i") : group.aggregate(() -> "i", s.named());
    }

    private static Object aggregateCogroupSessions(Step s) {
        SessionWindowedCogroupedKStream<Object, Object> group = s.above(0);
        Merger<Object, Object> merger = (k, one, other) -> cut(text(one) + "&" + text(other));
        return s.hasStore()
            ? s.unnamed()
                ? group.aggregate(() -> "i", merger, s.<SessionStore<Bytes, byte[]>>store(false))
                : group.aggregate(() -> "i", merger, s.named(), s.<SessionStore<Bytes, byte[]>>store(false))
            : s.unnamed() ? group.aggregate(() -> "i", merger) : group.aggregate(() -> "i", merger, s.named());
    }

    private static TimeWindows timeWindows(Step s) {
        return TimeWindows
            .ofSizeAndGrace(Duration.ofMillis(s.number("size")), Duration.ofMillis(s.number("grace")))
            .advanceBy(Duration.ofMillis(s.number("advance")));
    }

    private static SlidingWindows slidingWindows(Step s) {
        return SlidingWindows.ofTimeDifferenceAndGrace(
            Duration.ofMillis(s.number("size")), Duration.ofMillis(s.number("grace")));
    }

    private static UnlimitedWindows unlimitedWindows(Step s) {
        return UnlimitedWindows.of().startOn(Instant.ofEpochMilli(s.number("start")));
    }

    private static SessionWindows sessionWindows(Step s) {
        return SessionWindows.ofInactivityGapAndGrace(
            Duration.ofMillis(s.number("size")), Duration.ofMillis(s.number("grace")));
    }

    private static Object windowed(Step s) {
        KGroupedStream<Object, Object> group = s.above(0);
        String kind = s.node.get("windows").asText();
        TimeWindowedKStream<Object, Object> windowed = kind.equals("sliding") ? group.windowedBy(slidingWindows(s))
            : kind.equals("unlimited") ? group.windowedBy(unlimitedWindows(s))
            : group.windowedBy(timeWindows(s));
        return s.node.get("final").asBoolean() ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
    }

    private static Object sessions(Step s) {
        SessionWindowedKStream<Object, Object> windowed =
            s.<KGroupedStream<Object, Object>>above(0).windowedBy(sessionWindows(s));
        return s.node.get("final").asBoolean() ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
    }

    private static Object countSessions(Step s) {
        SessionWindowedKStream<Object, Object> group = s.above(0);
        Object table = s.hasStore()
            ? s.unnamed()
                ? group.count((Materialized<Object, Long, SessionStore<Bytes, byte[]>>) s.anyStore())
                : group.count(s.named(), (Materialized<Object, Long, SessionStore<Bytes, byte[]>>) s.anyStore())
            : s.unnamed() ? group.count() : group.count(s.named());
        return table;
    }

    private static Object reduceSessions(Step s) {
        SessionWindowedKStream<Object, Object> group = s.above(0);
        BiFunction<Object, Object, Object> f = REDUCERS.get(s.f());
        return s.hasStore()
            ? s.unnamed()
                ? group.reduce(f::apply, s.<SessionStore<Bytes, byte[]>>store(false))
                : group.reduce(f::apply, s.named(), s.<SessionStore<Bytes, byte[]>>store(false))
            : s.unnamed() ? group.reduce(f::apply) : group.reduce(f::apply, s.named());
    }

    private static Object aggregateSessions(Step s) {
        SessionWindowedKStream<Object, Object> group = s.above(0);
        Aggregator<Object, Object, Object> f = AGGREGATORS.get(s.f());
        Merger<Object, Object> merger = (k, one, other) -> cut(text(one) + "&" + text(other));
        return s.hasStore()
            ? s.unnamed()
                ? group.aggregate(() -> "i", f, merger, s.<SessionStore<Bytes, byte[]>>store(false))
                : group.aggregate(() -> "i", f, merger, s.named(), s.<SessionStore<Bytes, byte[]>>store(false))
            : s.unnamed()
                ? group.aggregate(() -> "i", f, merger)
                : group.aggregate(() -> "i", f, merger, s.named());
    }

    private interface Join {
        KTable<Object, Object> of(
            KTable<Object, Object> one, KTable<Object, Object> other, ValueJoiner<Object, Object, Object> joiner);
    }

    private interface NamedJoin {
        KTable<Object, Object> of(
            KTable<Object, Object> one, KTable<Object, Object> other, ValueJoiner<Object, Object, Object> joiner,
            Named named);
    }

    private interface StoredJoin {
        KTable<Object, Object> of(
            KTable<Object, Object> one, KTable<Object, Object> other, ValueJoiner<Object, Object, Object> joiner,
            Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store);
    }

    private interface NamedStoredJoin {
        KTable<Object, Object> of(
            KTable<Object, Object> one, KTable<Object, Object> other, ValueJoiner<Object, Object, Object> joiner,
            Named named, Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store);
    }

    private static Object joinTables(Step s, Join join, NamedJoin named, StoredJoin stored, NamedStoredJoin both) {
        KTable<Object, Object> other = s.above(1);
        ValueJoiner<Object, Object, Object> f = JOINERS.get(s.f())::apply;
        return s.hasStore()
            ? s.unnamed()
                ? stored.of(s.table(), other, f, s.store(true))
                : both.of(s.table(), other, f, s.named(), s.store(true))
            : s.unnamed() ? join.of(s.table(), other, f) : named.of(s.table(), other, f, s.named());
    }

    private static Object countRows(Step s) {
        KGroupedTable<Object, Object> group = s.above(0);
        Object table = s.hasStore()
            ? s.unnamed()
                ? group.count((Materialized<Object, Long, KeyValueStore<Bytes, byte[]>>) s.anyStore())
                : group.count(s.named(), (Materialized<Object, Long, KeyValueStore<Bytes, byte[]>>) s.anyStore())
            : s.unnamed() ? group.count() : group.count(s.named());
        return table;
    }

    private static Object reduceRows(Step s) {
        KGroupedTable<Object, Object> group = s.above(0);
        BiFunction<Object, Object, Object> add = REDUCERS.get(s.f());
        BiFunction<Object, Object, Object> undo = UNDOERS.get(s.node.get("undo").asText());
        return s.unnamed()
            ? s.hasStore()
                ? group.reduce(add::apply, undo::apply, s.<KeyValueStore<Bytes, byte[]>>store(false))
                : group.reduce(add::apply, undo::apply)
            : group.reduce(add::apply, undo::apply, s.named(), s.<KeyValueStore<Bytes, byte[]>>store(false));
    }

    private static Object aggregateRows(Step s) {
        KGroupedTable<Object, Object> group = s.above(0);
        Aggregator<Object, Object, Object> add = AGGREGATORS.get(s.f());
        BiFunction<Object, Object, Object> f = UNDOERS.get(s.node.get("undo").asText());
        Aggregator<Object, Object, Object> undo = (k, v, a) -> f.apply(a, v);
        return s.unnamed()
            ? s.hasStore()
                ? group.aggregate(() -> "i", add, undo, s.<KeyValueStore<Bytes, byte[]>>store(false))
                : group.aggregate(() -> "i", add, undo)
            : group.aggregate(() -> "i", add, undo, s.named(), s.<KeyValueStore<Bytes, byte[]>>store(false));
    }

    private static Object suppress(Step s) {
        boolean hasBytes = s.node.hasNonNull("bytes");
        if (s.node.get("wait").isNull()) {
            Suppressed held = Suppressed.untilWindowCloses(
                hasBytes
                    ? Suppressed.BufferConfig.maxBytes(s.number("bytes")).shutDownWhenFull()
                    : Suppressed.BufferConfig.unbounded());
            return s.<KTable>above(0).suppress(s.unnamed() ? held : held.withName(s.name()));
        }
        Suppressed.EagerBufferConfig eager = Suppressed.BufferConfig.maxRecords(s.number("most"));
        if (hasBytes) {
            eager = eager.withMaxBytes(s.number("bytes"));
        }
        Suppressed<Object> held = Suppressed.untilTimeLimit(
            Duration.ofMillis(s.number("wait")),
            s.node.path("ends").asBoolean() ? eager.shutDownWhenFull() : eager.emitEarlyWhenFull());
        return s.table().suppress(s.unnamed() ? held : held.withName(s.name()));
    }

    private static Object process(Building b, Step s) {
        String[] stores = {};
        if (s.hasStore()) {
            JsonNode told = s.node.get("store");
            stores = new String[] {told.get("name").asText()};
            StoreBuilder<TimestampedKeyValueStore<String, String>> store = Stores.timestampedKeyValueStoreBuilder(
                Stores.inMemoryKeyValueStore(stores[0]), Serdes.String(), Serdes.String());
            store = told.get("caching").asBoolean() ? store.withCachingEnabled() : store.withCachingDisabled();
            store = told.get("logging").asBoolean() ? store.withLoggingEnabled(new HashMap<>()) : store.withLoggingDisabled();
            b.builder.addStateStore(store);
        }
        return s.unnamed()
            ? s.stream().<Object, Object>process(() -> new Teller(s.node), stores)
            : s.stream().<Object, Object>process(() -> new Teller(s.node), s.named(), stores);
    }

    // As those of the same names in tests/streams/differential/processors.py.

    private static class Numberer implements FixedKeyProcessor<Object, Object, Object> {
        private FixedKeyProcessorContext<Object, Object> context;
        private int seen;

        @Override
        public void init(FixedKeyProcessorContext<Object, Object> context) {
            this.context = context;
        }

        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            seen++;
            Object value = record.value() == null ? null : cut(text(record.value()) + seen);
            context.forward(record.withValue(value));
        }
    }

    private static class Transformer implements ValueTransformerWithKey<Object, Object, Object> {
        private final String f;

        Transformer(String f) {
            this.f = f;
        }

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) { }

        @Override
        public Object transform(Object key, Object value) {
            return MAPPERS.get(f).apply(value);
        }

        @Override
        public void close() { }
    }

    private static class Chooser implements TopicNameExtractor<Object, Object> {
        private final Step step;

        Chooser(Step step) {
            this.step = step;
        }

        @Override
        public String extract(Object key, Object value, RecordContext context) {
            return step.topics().get(PREDICATES.get(step.f()).test(key, value) ? 0 : 1);
        }

        @Override
        public String toString() {
            return "chooser";
        }
    }

    private static class Teller implements Processor<Object, Object, Object, Object> {
        private final JsonNode step;
        private ProcessorContext<Object, Object> context;
        private TimestampedKeyValueStore<String, String> store;
        private int seen;

        Teller(JsonNode step) {
            this.step = step;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            this.context = context;
            store = step.get("store").isNull() ? null : context.getStateStore(step.get("store").get("name").asText());
            for (JsonNode schedule : step.get("schedules")) {
                String clock = schedule.get(1).asText();
                String told = clock.substring(0, 1) + schedule.get(0).asText();
                context.schedule(
                    Duration.ofMillis(schedule.get(0).asLong()),
                    clock.equals("stream_time") ? PunctuationType.STREAM_TIME : PunctuationType.WALL_CLOCK_TIME,
                    now -> fire(told, now));
            }
        }

        @Override
        public void process(Record<Object, Object> record) {
            seen++;
            if (store != null && record.key() != null) {
                keep(text(record.key()), record);
            }
            String value = record.value() == null ? null : cut(text(record.value()) + where());
            long timestamp = record.timestamp() + step.get("delay").asLong();
            context.forward(record.<Object>withValue(value).withTimestamp(timestamp));
        }

        private void keep(String key, Record<Object, Object> record) {
            if (record.value() == null) {
                store.delete(key);
            } else {
                ValueAndTimestamp<String> before = store.get(key);
                String value = cut((before == null ? "" : before.value()) + text(record.value()));
                store.put(key, ValueAndTimestamp.make(value, record.timestamp()));
            }
        }

        private String where() {
            if (!step.get("tells").asBoolean()) {
                return "";
            }
            RecordMetadata metadata = context.recordMetadata().orElse(null);
            if (metadata == null || metadata.topic() == null) {
                return "#none";
            }
            String topic = undecorated(metadata.topic());
            return "#" + topic.substring(0, Math.min(5, topic.length())) + ":" + metadata.offset();
        }

        private void fire(String told, long now) {
            List<String> kept = new ArrayList<>();
            if (store != null) {
                try (KeyValueIterator<String, ValueAndTimestamp<String>> all = store.all()) {
                    all.forEachRemaining(each -> kept.add(each.key));
                }
            }
            context.forward(new Record<>(told, seen + where() + kept.size(), now));
            if (!kept.isEmpty()) {
                store.delete(kept.get(0));
            }
        }
    }

    /** A topology under construction. */
    private static class Building {
        final StreamsBuilder builder = new StreamsBuilder();
        final List<Object> made = new ArrayList<>();
        final JsonNode steps;

        Building(JsonNode steps) {
            this.steps = steps;
        }

        Topology topology(String optimization) {
            for (JsonNode step : steps) {
                made.add(OPERATORS.get(step.get("op").asText()).make(this, new Step(this, step)));
            }
            Properties settings = new Properties();
            settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, optimization);
            return builder.build(settings);
        }
    }

    /** One step of a plan, and what is given to its operator. */
    private static class Step {
        final Building building;
        final JsonNode node;

        Step(Building building, JsonNode node) {
            this.building = building;
            this.node = node;
        }

        <T> T above(int number) {
            return (T) building.made.get(node.get("of").get(number).asInt());
        }

        KStream<Object, Object> stream() {
            return above(0);
        }

        KTable<Object, Object> table() {
            return above(0);
        }

        String f() {
            return node.get("f").asText();
        }

        long number(String name) {
            return node.get(name).asLong();
        }

        List<String> topics() {
            List<String> topics = new ArrayList<>();
            node.get("topics").forEach(topic -> topics.add(topic.asText()));
            return topics;
        }

        boolean unnamed() {
            return node.get("name").isNull();
        }

        String name() {
            return unnamed() ? null : node.get("name").asText();
        }

        Named named() {
            return Named.as(name());
        }

        Serde<Object> keySerde() {
            return serde(node.get("key").asText());
        }

        Serde<Object> valueSerde() {
            return serde(node.get("value").asText());
        }

        Consumed<Object, Object> consumed() {
            Consumed<Object, Object> consumed = Consumed.with(keySerde(), valueSerde());
            return unnamed() ? consumed : consumed.withName(name());
        }

        Produced<Object, Object> produced() {
            JsonNode above = building.steps.get(node.get("of").get(0).asInt());
            Produced<Object, Object> produced =
                Produced.with(serde(above.get("key").asText()), serde(above.get("value").asText()));
            return unnamed() ? produced : produced.withName(name());
        }

        Grouped<Object, Object> grouped() {
            Grouped<Object, Object> grouped = Grouped.with(keySerde(), valueSerde());
            return unnamed() ? grouped : grouped.withName(name());
        }

        Joined<Object, Object, Object> joined() {
            JsonNode above = building.steps.get(node.get("of").get(0).asInt());
            Joined<Object, Object, Object> joined =
                Joined.with(serde(above.get("key").asText()), serde(above.get("value").asText()), null);
            if (node.hasNonNull("late")) {
                joined = joined.withGracePeriod(Duration.ofMillis(number("late")));
            }
            return unnamed() ? joined : joined.withName(name());
        }

        Repartitioned<Object, Object> repartitioned() {
            Repartitioned<Object, Object> repartitioned = Repartitioned.with(keySerde(), valueSerde());
            return unnamed() ? repartitioned : repartitioned.withName(name());
        }

        JoinWindows windows() {
            return JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(0), Duration.ofMillis(number("grace")))
                .before(Duration.ofMillis(number("before")))
                .after(Duration.ofMillis(number("after")));
        }

        StreamJoined<Object, Object, Object> streamJoined() {
            JsonNode left = building.steps.get(node.get("of").get(0).asInt());
            JsonNode right = building.steps.get(node.get("of").get(1).asInt());
            StreamJoined<Object, Object, Object> joined = StreamJoined.with(
                serde(left.get("key").asText()), serde(left.get("value").asText()), serde(right.get("value").asText()));
            joined = joined.withDslStoreSuppliers(BuiltInDslStoreSuppliers.ROCKS_DB);
            return unnamed() ? joined : joined.withName(name());
        }

        boolean hasStore() {
            return !node.get("store").isNull();
        }

        Materialized<Object, ?, ?> anyStore() {
            return store(false);
        }

        /** The store, with both serdes or that of the values only. */
        <S extends StateStore> Materialized<Object, Object, S> store(boolean withKeys) {
            Materialized<Object, Object, S> store = Materialized.with(null, null);
            JsonNode told = node.get("store");
            if (!told.isNull()) {
                store = told.get("name").isNull() ? store
                    : told.has("history") ? (Materialized) Materialized.as(versions(told))
                    : Materialized.as(told.get("name").asText());
                store = told.get("caching").asBoolean() ? store.withCachingEnabled() : store.withCachingDisabled();
                store = told.get("logging").asBoolean() ? store.withLoggingEnabled(new HashMap<>()) : store.withLoggingDisabled();
                if (node.has("windowed") && told.get("retained").asBoolean()) {
                    store = store.withRetention(RETENTION);
                }
            }
            store = store.withValueSerde(valueSerde());
            return withKeys ? store.withKeySerde(keySerde()) : store;
        }
    }

    private static KeyValueBytesStoreSupplier versions(JsonNode store) {
        return Stores.persistentVersionedKeyValueStore(
            store.get("name").asText(), Duration.ofMillis(store.get("history").asLong()), SEGMENT);
    }

    private static Serde<Object> serde(String type) {
        Serde<?> serde = type.equals("s") ? Serdes.String()
            : type.equals("l") ? Serdes.Long()
            : type.equals("sessions") ? WindowedSerdes.sessionWindowedSerdeFrom(String.class)
            : WindowedSerdes.timeWindowedSerdeFrom(String.class, Long.parseLong(type));
        return (Serde<Object>) serde;
    }

    // Running

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            run(mapper.readTree(line), arguments[0]);
            OUT.println(".");
            OUT.flush();
        }
    }

    private static void run(JsonNode plan, String folder) {
        Topology topology;
        try {
            topology = new Building(plan.get("steps")).topology(plan.path("optimization").asText(StreamsConfig.NO_OPTIMIZATION));
        } catch (RuntimeException error) {
            OUT.println("refused");
            OUT.println(String.valueOf(error.getMessage()).lines().findFirst().orElse(""));
            return;
        }
        OUT.println(topology.describe().toString().stripTrailing());
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(
            StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        // Nothing waits for the wall clock.
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.ofEpochMilli(3))) {
            for (JsonNode event : plan.get("events")) {
                play(driver, event);
                tell(driver);
            }
            tellStores(driver, plan.get("steps"));
        } catch (RuntimeException error) {
            OUT.println("failed: " + full(error).orElse(String.valueOf(error)));
        }
    }

    /** How full a buffer was, if it was too full. */
    private static Optional<String> full(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            Matcher found = FULL.matcher(String.valueOf(cause.getMessage()));
            if (found.find()) {
                return Optional.of(found.group(1) + " records, " + found.group(2) + " bytes held");
            }
        }
        return Optional.empty();
    }

    private static void play(TopologyTestDriver driver, JsonNode event) {
        if (event.get(0).asText().equals("wall")) {
            OUT.println("> wall " + event.get(1).asText());
            driver.advanceWallClockTime(Duration.ofMillis(event.get(1).asLong()));
            return;
        }
        Headers headers = new RecordHeaders();
        List<String> words = new ArrayList<>();
        for (JsonNode header : event.get(5)) {
            headers.add(header.get(0).asText(), bytes(header.get(1)));
            words.add(header.get(0).asText() + "=" + word(header.get(1)));
        }
        OUT.println("> pipe " + word(event.get(1)) + " " + word(event.get(2)) + " " + word(event.get(3)) + " "
            + event.get(4).asText() + " " + (words.isEmpty() ? "-" : String.join(",", words)));
        driver.createInputTopic(event.get(1).asText(), new ByteArraySerializer(), new ByteArraySerializer())
            .pipeInput(new TestRecord<>(bytes(event.get(2)), bytes(event.get(3)), headers, event.get(4).asLong()));
    }

    private static String word(JsonNode node) {
        return node.isNull() ? "-" : node.asText();
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : node.asText().getBytes(StandardCharsets.UTF_8);
    }

    /** What was written since the last event. */
    private static void tell(TopologyTestDriver driver) {
        Map<String, String> topics = new TreeMap<>();
        Map<String, StateStore> stores = driver.getAllStateStores();
        driver.producedTopicNames().forEach(topic -> topics.put(undecorated(topic), topic));
        topics.forEach((topic, decorated) -> {
            if (topic.matches(".*(-store|SUPPRESS-STATE-STORE-[0-9]+|-Buffer|V[0-9]+)-changelog")) {
                return;
            }
            List<TestRecord<byte[], byte[]>> records = new ArrayList<>(
                driver.createOutputTopic(decorated, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                    .readRecordsToList());
            if (topic.endsWith("-changelog")) {
                Map<String, TestRecord<byte[], byte[]>> last = new TreeMap<>();
                records.forEach(record -> last.put(HexFormat.of().formatHex(record.key()), record));
                records = new ArrayList<>(last.values());
            }
            for (TestRecord<byte[], byte[]> record : records) {
                StringBuilder told = new StringBuilder();
                if (!topic.endsWith("-changelog")) {
                    for (Header header : record.headers()) {
                        told.append(" ").append(header.key()).append("=").append(told(header.value()));
                    }
                }
                boolean ofSessions = topic.endsWith("-changelog")
                    && stores.get(topic.substring(0, topic.length() - "-changelog".length())) instanceof SessionStore;
                String timestamp = ofSessions ? "*" : record.timestamp().toString();
                OUT.println(topic + " " + told(record.key()) + " " + told(record.value()) + " " + timestamp + told);
            }
        });
    }

    private static String undecorated(String topic) {
        return topic.startsWith(APPLICATION + "-") ? topic.substring(APPLICATION.length() + 1) : topic;
    }

    private static String told(byte[] data) {
        if (data == null) {
            return "-";
        }
        for (byte each : data) {
            if (each < 33 || each >= 127) {
                return "0x" + HexFormat.of().formatHex(data);
            }
        }
        return data.length == 0 ? "0x" : new String(data, StandardCharsets.UTF_8);
    }

    private static void tellStores(TopologyTestDriver driver, JsonNode steps) {
        Map<String, StateStore> stores = driver.getAllStateStores();
        TreeSet<String> shown = new TreeSet<>();
        for (JsonNode step : steps) {
            JsonNode told = step.get("store");
            if (!told.isNull() && (!step.has("windowed") || told.get("retained").asBoolean())) {
                shown.add(word(told.get("name")));
            }
        }
        for (String name : shown) {
            StateStore store = stores.get(name);
            TreeSet<String> lines = new TreeSet<>();
            if (store instanceof TimestampedWindowStore) {
                try (KeyValueIterator<Windowed<Object>, ValueAndTimestamp<Object>> all =
                         ((TimestampedWindowStore<Object, Object>) store).all()) {
                    all.forEachRemaining(each -> lines.add(toldEntry(name, each.key, each.value)));
                }
            } else if (store instanceof TimestampedKeyValueStore) {
                try (KeyValueIterator<Object, ValueAndTimestamp<Object>> all =
                         ((TimestampedKeyValueStore<Object, Object>) store).all()) {
                    all.forEachRemaining(each -> lines.add(toldEntry(name, each.key, each.value)));
                }
            }
            lines.forEach(OUT::println);
        }
    }

    private static String toldEntry(String name, Object key, ValueAndTimestamp<Object> value) {
        return name + ": " + text(key) + " " + text(value.value()) + " " + value.timestamp();
    }
}
