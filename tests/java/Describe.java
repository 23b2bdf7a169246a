// Prints what Kafka's StreamsBuilder describes of the programs in tests/streams/topology/test_describe.py: the
// same calls, in the same order.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Describe.java
//
// What it prints is kept in tests/streams/golden/describe; the test writes it anew with REWRITE=1.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.RecordContext;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

public class Describe {
    private static final Map<String, Consumer<StreamsBuilder>> PROGRAMS = new TreeMap<>();

    private static final JoinWindows WINDOWS =
        JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMinutes(1), Duration.ofHours(1));

    static {
        PROGRAMS.put("stateless", Describe::stateless);
        PROGRAMS.put("wordcount", Describe::wordcount);
        PROGRAMS.put("count-by-key", Describe::countByKey);
        PROGRAMS.put("flights", Describe::flights);
        PROGRAMS.put("table-ops", Describe::tableOps);
        PROGRAMS.put("merge", Describe::merge);
        PROGRAMS.put("cogroup", Describe::cogroup);
        PROGRAMS.put("windows", Describe::windows);
        PROGRAMS.put("to-table", Describe::toTable);
        PROGRAMS.put("to-table-repartition", Describe::toTableRepartition);
        PROGRAMS.put("join-repartition", Describe::joinRepartition);
        PROGRAMS.put("shared-group", Describe::sharedGroup);
        PROGRAMS.put("named", Describe::named);
        PROGRAMS.put("names-cost-numbers", Describe::namesCostNumbers);
        PROGRAMS.put("shared-joins", Describe::sharedJoins);
        PROGRAMS.put("shared-windows", Describe::sharedWindows);
        PROGRAMS.put("foreign-joins", Describe::foreignJoins);
        PROGRAMS.put("foreign-join-named", Describe::foreignJoinNamed);
        PROGRAMS.put("table-joins", Describe::tableJoins);
        PROGRAMS.put("table-joins-named", Describe::tableJoinsNamed);
        PROGRAMS.put("global-table", Describe::globalTable);
        PROGRAMS.put("branches", Describe::branches);
        PROGRAMS.put("branches-named", Describe::branchesNamed);
        PROGRAMS.put("repartition", Describe::repartition);
        PROGRAMS.put("values", Describe::values);
        PROGRAMS.put("chosen-topic", Describe::chosenTopic);
        PROGRAMS.put("transform-values", Describe::transformValues);
        PROGRAMS.put("tables-grouped", Describe::tablesGrouped);
        PROGRAMS.put("tables-grouped-again", Describe::tablesGroupedAgain);
        PROGRAMS.put("same-topics", Describe::sameTopics);
        PROGRAMS.put("same-topics-joined", Describe::sameTopicsJoined);
        PROGRAMS.put("patterns", Describe::patterns);
        PROGRAMS.put("global-table-alone", b -> b.globalTable("g", Materialized.as("kept")));
        PROGRAMS.put("stream-join", Describe::streamJoin);
        PROGRAMS.put("stream-left-join", Describe::streamLeftJoin);
        PROGRAMS.put("stream-outer-join", Describe::streamOuterJoin);
        PROGRAMS.put("stream-join-repartition", Describe::streamJoinRepartition);
        PROGRAMS.put("stream-join-named", Describe::streamJoinNamed);
        PROGRAMS.put("global-stores", Describe::globalStores);
        PROGRAMS.put("stream-self-join", Describe::streamSelfJoin);
        PROGRAMS.put("self-joins-named", Describe::selfJoinsNamed);
        PROGRAMS.put("one-key-changer", Describe::oneKeyChanger);
        PROGRAMS.put("merged-key-changers", Describe::mergedKeyChangers);
        PROGRAMS.put("values-changed-between", Describe::valuesChangedBetween);
        PROGRAMS.put("copartitioned-behind-one-topic", Describe::copartitionedBehindOneTopic);
    }

    /** All programs, each behind a line with its name, and once more optimized where that is another topology. */
    public static void main(String[] arguments) {
        PROGRAMS.forEach((name, program) -> {
            StreamsBuilder builder = new StreamsBuilder();
            program.accept(builder);
            System.out.println("== " + name);
            String plain = builder.build().describe().toString();
            System.out.print(plain);
            StreamsBuilder again = new StreamsBuilder();
            program.accept(again);
            Properties settings = new Properties();
            settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
            String optimized = again.build(settings).describe().toString();
            if (!optimized.equals(plain)) {
                System.out.println("== " + name + "-optimized");
                System.out.print(optimized);
            }
        });
        System.out.println("== node-by-node");
        System.out.print(nodeByNode().describe());
        StreamsBuilder cogrouped = new StreamsBuilder();
        cogroupedAgain(cogrouped);
        Properties settings = new Properties();
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        System.out.println("== cogrouped-again-optimized");
        System.out.print(cogrouped.build(settings).describe());
    }

    /** Without the optimization Kafka would have two topics of one name, which is an error. */
    private static void cogroupedAgain(StreamsBuilder b) {
        KGroupedStream<String, String> grouped =
            b.<String, String>stream("in").groupBy((k, v) -> v, Grouped.as("by-value"));
        grouped.<String>cogroup((k, v, a) -> v).aggregate(() -> "").toStream().to("first");
        grouped.count().toStream().to("counts");
        grouped.<String>cogroup((k, v, a) -> v)
            .cogroup(b.<String, String>stream("other").groupByKey(), (k, v, a) -> v)
            .aggregate(() -> "").toStream().to("second");
    }

    private static void globalStores(StreamsBuilder b) {
        KStream<String, String> first = b.stream("in");
        b.addGlobalStore(
            Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("kept"), Serdes.String(), Serdes.String()),
            "g",
            Consumed.with(Serdes.String(), Serdes.String()),
            Describe::<Void, Void>nothing);
        b.addGlobalStore(
            Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("named"), Serdes.String(), Serdes.String()),
            "h",
            Consumed.<String, String>as("by-hand").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()),
            Describe::<Void, Void>nothing);
        first.process(Describe::<String, String>nothing).to("out");
    }

    private static <K, V> Processor<String, String, K, V> nothing() {
        return new Processor<>() {
            @Override
            public void process(Record<String, String> record) {
            }
        };
    }

    private static void selfJoinsNamed(StreamsBuilder b) {
        KStream<String, String> stream = b.stream("in");
        JoinWindows windows = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(5));
        stream.leftJoin(stream, (x, y) -> x + y, windows, StreamJoined.<String, String, String>with(null, null, null).withName("left")).to("left");
        stream.outerJoin(stream, (x, y) -> x + y, windows).to("outer");
        KStream<String, String> rekeyed = stream.selectKey((k, v) -> v, Named.as("by-value"));
        rekeyed.join(rekeyed, (x, y) -> x + y, windows, StreamJoined.<String, String, String>as("kept").withName("own"))
            .to("own");
        rekeyed.join(rekeyed.filter((k, v) -> true), (x, y) -> x + y, windows).to("not-itself");
    }

    private static void oneKeyChanger(StreamsBuilder b) {
        KStream<String, String> rekeyed = b.<String, String>stream("in").selectKey((k, v) -> v);
        rekeyed.filter((k, v) -> true).groupByKey().count().toStream().to("counts", Produced.with(null, null));
        rekeyed.groupByKey(Grouped.as("named")).reduce((x, y) -> x).toStream().to("reductions");
        rekeyed.toTable(Named.as("table")).toStream().to("table");
        rekeyed.repartition(Repartitioned.as("asked-for")).groupByKey().count(Named.as("apart"));
        rekeyed.peek((k, v) -> { }).to("as-they-are");
        KStream<String, String> onceMore = rekeyed.filterNot((k, v) -> true).map((k, v) -> KeyValue.pair(v, k));
        onceMore.groupByKey().count(Materialized.as("kept"));
        onceMore.join(b.<String, String>table("t"), (x, y) -> x + y, Joined.as("joined")).to("joined");
        b.<String, String>stream("other").groupBy((k, v) -> v, Grouped.as("grouped")).count(Named.as("counted"));
    }

    private static void mergedKeyChangers(StreamsBuilder b) {
        KStream<String, String> one = b.<String, String>stream("a").selectKey((k, v) -> v, Named.as("one"));
        KStream<String, String> other = b.<String, String>stream("b").selectKey((k, v) -> v, Named.as("other"));
        KStream<String, String> both = one.merge(other);
        both.filter((k, v) -> true).groupByKey().count().toStream().to("counts", Produced.with(null, null));
        both.groupByKey().reduce((x, y) -> x, Materialized.as("reduced")).toStream().to("reductions");
    }

    private static void valuesChangedBetween(StreamsBuilder b) {
        KStream<String, String> rekeyed = b.<String, String>stream("in").map((k, v) -> KeyValue.pair(v, k));
        rekeyed.mapValues(v -> v).groupByKey().count();
        rekeyed.flatMapValues(v -> List.of(v)).filter((k, v) -> true).groupByKey().reduce((x, y) -> x);
        KGroupedStream<String, String> group = rekeyed.groupByKey();
        group.count(Named.as("counted"));
        group.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(5))).count(Named.as("by-window"));
    }

    private static void copartitionedBehindOneTopic(StreamsBuilder b) {
        KStream<String, String> rekeyed = b.<String, String>stream("in").selectKey((k, v) -> v);
        KStream<String, String> plain = b.stream("plain");
        JoinWindows windows = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(5));
        KTable<String, String> counts = rekeyed.groupByKey().reduce((x, y) -> x);
        plain.join(counts, (x, y) -> x + y).join(rekeyed, (x, y) -> x + y, windows).to("out");
        rekeyed.leftJoin(counts, (x, y) -> x + y).to("joined");
        plain.groupByKey().cogroup((k, v, a) -> a).cogroup(rekeyed.groupByKey(), (k, v, a) -> a).aggregate(() -> "");
    }

    private static void tablesGrouped(StreamsBuilder b) {
        KTable<String, String> table = b.table("in");
        KGroupedTable<String, String> group = table.groupBy((k, v) -> KeyValue.pair(v, k));
        group.count().toStream().to("counts");
        group.reduce((x, y) -> x, (x, y) -> x, Materialized.as("reduced")).toStream().to("reductions");
        KGroupedTable<String, String> named = table.filter((k, v) -> true, Named.as("kept"))
            .groupBy((k, v) -> KeyValue.pair(v, k), Grouped.as("by-value"));
        named.aggregate(() -> "", (k, v, a) -> a, (k, v, a) -> a, Named.as("sum")).toStream().to("sums");
        named.count(Named.as("number"), Materialized.as("numbers"))
            .suppress(Suppressed.untilTimeLimit(Duration.ofMillis(5), Suppressed.BufferConfig.unbounded()))
            .suppress(
                Suppressed.<String>untilTimeLimit(Duration.ofMillis(5), Suppressed.BufferConfig.unbounded())
                    .withName("held"))
            .mapValues(v -> "" + v, Materialized.with(null, null))
            .toStream()
            .to("out");
    }

    private static void stateless(StreamsBuilder b) {
        KStream<String, String> stream = b.stream("in");
        stream.filter((k, v) -> true)
            .filterNot((k, v) -> true)
            .map((k, v) -> KeyValue.pair(k, v))
            .mapValues(v -> v)
            .flatMap((k, v) -> List.<KeyValue<String, String>>of())
            .flatMapValues(v -> List.of(v))
            .selectKey((k, v) -> k)
            .peek((k, v) -> { })
            .to("out");
    }

    private static void wordcount(StreamsBuilder b) {
        KStream<String, String> stream = b.stream("in");
        stream.flatMapValues(v -> List.of(v.split(" ")))
            .groupBy((k, v) -> v)
            .count(Materialized.as("counts"))
            .toStream()
            .to("out");
    }

    private static void countByKey(StreamsBuilder b) {
        b.<String, String>stream("in").groupByKey().count().toStream().to("out");
    }

    private static void flights(StreamsBuilder b) {
        KTable<String, String> airlines = b.table("airlines");
        KStream<String, String> joined = b.<String, String>stream("flights").join(airlines, (f, a) -> f + a);
        Materialized<String, String, WindowStore<Bytes, byte[]>> delays =
            Materialized.<String, String, WindowStore<Bytes, byte[]>>as("delays")
                .withRetention(Duration.ofDays(401));
        joined.groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofDays(1), Duration.ofDays(400)))
            .aggregate(() -> "", (k, v, a) -> a, delays)
            .toStream()
            .map((k, v) -> KeyValue.pair(k.key(), v))
            .to("airline-delays");
    }

    private static void tableOps(StreamsBuilder b) {
        KTable<String, String> table = b.table("t", Materialized.as("store"));
        table.filter((k, v) -> true).mapValues(v -> v).toStream().to("out");
    }

    private static void cogroup(StreamsBuilder b) {
        KGroupedStream<String, String> one = b.<String, String>stream("a").groupByKey();
        KGroupedStream<String, String> other = b.<String, String>stream("b").groupBy((k, v) -> v);
        KGroupedStream<String, String> named =
            b.<String, String>stream("c").groupBy((k, v) -> v, Grouped.as("named"));
        CogroupedKStream<String, String> both = one.<String>cogroup((k, v, a) -> v).cogroup(other, (k, v, a) -> v);
        both.aggregate(() -> "").toStream().to("plain");
        both.aggregate(() -> "", Named.as("again"), Materialized.as("kept")).toStream().to("again");
        both.cogroup(named, (k, v, a) -> v)
            .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMillis(10)))
            .aggregate(() -> "", (k, x, y) -> x, Materialized.as("sessions"))
            .toStream((k, v) -> k.key())
            .to("sessions");
    }

    private static void windows(StreamsBuilder b) {
        KGroupedStream<String, String> grouped = b.<String, String>stream("in").groupBy((k, v) -> v);
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMillis(10)))
            .count()
            .toStream((k, v) -> k.key())
            .to("counts");
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMillis(10)))
            .reduce((x, y) -> x, Named.as("reducer"))
            .toStream((k, v) -> k.key())
            .to("reduced");
        grouped.windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(10)))
            .emitStrategy(EmitStrategy.onWindowClose())
            .aggregate(() -> "", (k, v, a) -> a)
            .toStream((k, v) -> k.key())
            .to("slid");
        grouped.windowedBy(UnlimitedWindows.of())
            .count(Materialized.as("all"))
            .toStream((k, v) -> k.key())
            .to("all");
    }

    private static void merge(StreamsBuilder b) {
        KStream<String, String> first = b.stream("a");
        KStream<String, String> second = b.stream("b");
        first.merge(second).foreach((k, v) -> { });
    }

    private static void toTable(StreamsBuilder b) {
        b.<String, String>stream("a").toTable().toStream().to("o");
    }

    private static void toTableRepartition(StreamsBuilder b) {
        b.<String, String>stream("a").selectKey((k, v) -> v).toTable().toStream((k, v) -> k).to("o");
    }

    private static void joinRepartition(StreamsBuilder b) {
        KTable<String, String> table = b.table("t");
        b.<String, String>stream("a")
            .map((k, v) -> KeyValue.pair(v, k))
            .leftJoin(table, (x, y) -> x)
            .to("o");
    }

    private static void sharedGroup(StreamsBuilder b) {
        KGroupedStream<String, String> grouped = b.<String, String>stream("in").groupBy((k, v) -> v);
        grouped.count().toStream().to("c");
        grouped.reduce((x, y) -> y).toStream().to("r");
    }

    private static void named(StreamsBuilder b) {
        b.<String, String>stream("in", Consumed.as("source"))
            .filter((k, v) -> true, Named.as("keep"))
            .groupBy((k, v) -> v, Grouped.as("by-value"))
            .count(Named.as("counter"), Materialized.as("counts"))
            .toStream(Named.as("back"))
            .to("out", Produced.as("sink"));
    }

    private static void namesCostNumbers(StreamsBuilder b) {
        KStream<String, String> stream = b.<String, String>stream("in", Consumed.as("S"))
            .filter((k, v) -> true, Named.as("F"))
            .<String, String>process(Nothing::new, Named.as("P"));
        stream.mapValues(v -> v, Named.as("V"))
            .groupByKey()
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>with(null, null).withCachingDisabled());
        KTable<String, String> table = b.<String, String>table("t", Consumed.as("T"))
            .filter((k, v) -> true, Named.as("TF"))
            .toStream((k, v) -> k, Named.as("TS"))
            .toTable();
        stream.merge(stream, Named.as("M"))
            .join(table, (x, y) -> x, Joined.as("J"))
            .to("out", Produced.as("O"));
        stream.toTable(Named.as("TT")).toStream().to("end");
    }

    private static void sharedJoins(StreamsBuilder b) {
        KTable<String, String> table = b.table("t");
        KStream<String, String> stream = b.<String, String>stream("in").selectKey((k, v) -> v, Named.as("N"));
        stream.join(table, (x, y) -> x).to("a");
        stream.leftJoin(table, (x, y) -> x).to("b");
        stream.join(table, (x, y) -> x, Joined.as("J")).to("c");
        stream.join(table, (x, y) -> x).to("d");
    }

    private static void sharedWindows(StreamsBuilder b) {
        KGroupedStream<String, String> grouped = b.<String, String>stream("in").groupBy((k, v) -> v, Grouped.as("G"));
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(10))).count().toStream().to("a");
        b.<String, String>stream("other").groupByKey().count().toStream().to("b");
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(20))).count().toStream().to("c");
        grouped.count(Materialized.as("S")).toStream().to("d");
    }

    private static class Nothing implements Processor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) { }
    }

    private static void foreignJoins(StreamsBuilder b) {
        KTable<String, String> left = b.table("l");
        KTable<String, String> right = b.<String, String>table("r").filter((k, v) -> true);
        left.mapValues(v -> v)
            .join(right, v -> v, (x, y) -> x)
            .leftJoin(b.<String, String>table("t"), (k, v) -> v, (x, y) -> x)
            .toStream()
            .to("out");
        b.<String, String>stream("s").join(left.join(right, v -> v, (x, y) -> x), (x, y) -> x).to("read");
    }

    private static void foreignJoinNamed(StreamsBuilder b) {
        KTable<String, String> left = b.table("l");
        left.join(b.<String, String>table("r"), v -> v, (x, y) -> x, TableJoined.as("both"), Materialized.as("kept"))
            .toStream()
            .to("out");
    }

    private static void tableJoins(StreamsBuilder b) {
        KTable<String, String> left = b.table("l");
        KTable<String, String> right = b.<String, String>table("r").filter((k, v) -> true);
        left.join(right, (x, y) -> x)
            .leftJoin(b.<String, String>table("t").mapValues(v -> v), (x, y) -> x)
            .outerJoin(left, (x, y) -> x, Materialized.with(null, null))
            .toStream()
            .to("out");
        b.<String, String>stream("s").join(left.join(right, (x, y) -> x), (x, y) -> x).to("read");
    }

    private static void tableJoinsNamed(StreamsBuilder b) {
        KTable<String, String> left = b.table("l");
        left.outerJoin(b.<String, String>table("r"), (x, y) -> x, Named.as("both"), Materialized.as("kept"))
            .toStream()
            .to("out");
    }

    private static void globalTable(StreamsBuilder b) {
        KStream<String, String> stream = b.stream("in");
        GlobalKTable<String, String> first = b.globalTable("g");
        GlobalKTable<String, String> second =
            b.globalTable("h", Consumed.as("named"), Materialized.as("kept"));
        stream.selectKey((k, v) -> v)
            .join(first, (k, v) -> v, (x, y) -> x)
            .leftJoin(second, (k, v) -> v, (x, y) -> x, Named.as("by-value"))
            .groupByKey()
            .count()
            .toStream()
            .to("out");
    }

    private static void streamJoin(StreamsBuilder b) {
        KStream<String, String> left = b.stream("l");
        left.join(b.<String, String>stream("r"), (x, y) -> x, WINDOWS).groupByKey().count().toStream().to("out");
    }

    private static void streamLeftJoin(StreamsBuilder b) {
        KStream<String, String> left = b.stream("l");
        left.leftJoin(b.<String, String>stream("r"), (x, y) -> x, WINDOWS).to("out");
    }

    private static void streamOuterJoin(StreamsBuilder b) {
        KStream<String, String> left = b.stream("l");
        left.outerJoin(b.<String, String>stream("r"), (x, y) -> x, WINDOWS).to("out");
    }

    private static void streamJoinRepartition(StreamsBuilder b) {
        KStream<String, String> left = b.stream("l");
        KStream<String, String> right = b.stream("r");
        left.selectKey((k, v) -> v)
            .join(right.map((k, v) -> KeyValue.pair(v, k)), (x, y) -> x, WINDOWS)
            .to("out");
    }

    private static void streamJoinNamed(StreamsBuilder b) {
        KStream<String, String> left = b.stream("l");
        KStream<String, String> right = b.stream("r");
        StreamJoined<String, String, String> options =
            StreamJoined.<String, String, String>as("stores").withName("both");
        left.selectKey((k, v) -> v, Named.as("by-value"))
            .outerJoin(right.selectKey((k, v) -> v, Named.as("by-value-too")), (x, y) -> x, WINDOWS, options)
            .to("out", Produced.as("sink"));
    }

    private static void streamSelfJoin(StreamsBuilder b) {
        KStream<String, String> stream = b.stream("l");
        stream.join(stream, (x, y) -> x, WINDOWS).to("out");
    }

    private static void branches(StreamsBuilder b) {
        Map<String, KStream<String, String>> branches = b.<String, String>stream("in")
            .split()
            .branch((k, v) -> true)
            .branch((k, v) -> true, Branched.as("-b"))
            .branch((k, v) -> true, Branched.withConsumer(stream -> stream.to("c")))
            .branch((k, v) -> true, Branched.withFunction(stream -> stream.mapValues(v -> v)))
            .defaultBranch();
        new TreeMap<>(branches).forEach((name, stream) -> stream.to(name));
        b.<String, String>stream("more").split().branch((k, v) -> true).noDefaultBranch();
    }

    private static void branchesNamed(StreamsBuilder b) {
        Map<String, KStream<String, String>> branches = b.<String, String>stream("in")
            .selectKey((k, v) -> v)
            .split(Named.as("by-"))
            .branch((k, v) -> true, Branched.as("size"))
            .branch((k, v) -> true)
            .defaultBranch(Branched.as("rest"));
        branches.get("by-size").groupByKey().count().toStream().to("size");
        branches.get("by-2").to("2");
        branches.get("by-rest").to("rest");
    }

    private static void repartition(StreamsBuilder b) {
        b.<String, String>stream("in").repartition().to("out");
        b.<String, String>stream("keyed")
            .selectKey((k, v) -> v)
            .repartition(Repartitioned.<String, String>as("R").withNumberOfPartitions(3))
            .groupByKey()
            .count()
            .toStream()
            .to("counts");
        b.<String, String>stream("more").repartition(Repartitioned.as("given-repartition")).mapValues(v -> v).to("end");
    }

    private static void values(StreamsBuilder b) {
        b.addStateStore(Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.String()));
        KStream<String, String> stream = b.stream("in");
        stream.selectKey((k, v) -> v)
            .processValues(Values::new, "seen")
            .processValues(Values::new, Named.as("again"))
            .mapValues((k, v) -> v)
            .flatMapValues((k, v) -> List.of(v))
            .groupByKey()
            .count()
            .toStream()
            .print(Printed.toSysOut());
        stream.print(Printed.<String, String>toSysOut().withName("printer").withLabel("label"));
    }

    /** A processor of values that forwards nothing. */
    private static class Values implements FixedKeyProcessor<String, String, String> {
        @Override
        public void process(FixedKeyRecord<String, String> record) {
        }
    }

    private static void transformValues(StreamsBuilder b) {
        b.addStateStore(Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.String()));
        KTable<String, String> table = b.table("in");
        KTable<String, String> plain = table.transformValues(Unchanged::new);
        b.<String, String>stream("s").join(plain, (x, y) -> x + y).to("joined");
        table.transformValues(Unchanged::new, Materialized.as("kept"), Named.as("T"), "seen")
            .filter((k, v) -> true)
            .toStream()
            .to("out");
        plain.groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("counts");
    }

    /** A transformer of values that leaves them as they are. */
    private static class Unchanged implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(ProcessorContext context) {
        }

        @Override
        public String transform(String key, String value) {
            return value;
        }

        @Override
        public void close() {
        }
    }

    private static void chosenTopic(StreamsBuilder b) {
        b.<String, String>stream("in").to(new ByValue());
    }

    /** Sends a record to the topic that is its value; prints its name. */
    private static class ByValue implements TopicNameExtractor<String, String> {
        @Override
        public String extract(String key, String value, RecordContext context) {
            return value;
        }

        @Override
        public String toString() {
            return "by_value";
        }
    }

    private static void tablesGroupedAgain(StreamsBuilder b) {
        KGroupedTable<String, String> group =
            b.<String, String>table("in").groupBy((k, v) -> KeyValue.pair(v, k), Grouped.as("by-value"));
        group.count(Materialized.as("first"));
        b.<String, String>table("between", Materialized.as("kept"));
        group.count();
        b.<String, String>stream("behind").to("out");
        group.reduce((x, y) -> x, (x, y) -> x, Named.as("last"), Materialized.as("reduced"));
        KGroupedStream<String, String> streams =
            b.<String, String>stream("s").groupBy((k, v) -> v, Grouped.as("streams"));
        streams.count();
        b.<String, String>table("more");
        streams.reduce((x, y) -> x).toStream().to("reductions");
    }

    private static void sameTopics(StreamsBuilder b) {
        b.<String, String>stream(List.of("t", "u")).to("a");
        b.<String, String>stream("between").to("x");
        b.<String, String>stream(List.of("u", "t", "u"), Consumed.as("again")).mapValues(v -> v).to("b");
        KStream<String, String> third = b.stream(List.of("t", "u"));
        third.merge(b.stream(List.of("t", "u"))).to("c");
        third.groupByKey().count(Materialized.as("counts"));
    }

    private static void sameTopicsJoined(StreamsBuilder b) {
        KStream<String, String> left = b.stream("t", Consumed.as("one"));
        left.join(b.<String, String>stream("t", Consumed.as("one")), (x, y) -> x, WINDOWS).to("joined");
        b.<String, String>stream("t").join(b.<String, String>table("u"), (x, y) -> x).to("with-table");
        b.<String, String>stream("t").selectKey((k, v) -> v).join(b.<String, String>table("v"), (x, y) -> x).to("by-value");
        b.<String, String>stream("t").merge(b.stream("w")).groupByKey().count();
    }

    private static void patterns(StreamsBuilder b) {
        b.<String, String>stream(Pattern.compile("a-.*")).to("a");
        b.<String, String>stream(Pattern.compile("b-[0-9]+"), Consumed.as("named"))
            .join(b.<String, String>table("t"), (x, y) -> x)
            .to("b");
        b.<String, String>stream(Pattern.compile("a-.*")).groupBy((k, v) -> v, Grouped.as("by-value")).count();
    }

    private static Topology nodeByNode() {
        Topology topology = new Topology();
        topology.addSource("source", "in")
            .addSource("other", "a", "b")
            .addProcessor("first", Quiet::new, "source")
            .addProcessor("second", Quiet::new, "first", "other")
            .addStateStore(Stores.keyValueStoreBuilder(
                Stores.inMemoryKeyValueStore("kept"), Serdes.String(), Serdes.String()), "second")
            .addSink("sink", "out", "second", "first")
            .addSource("apart", "c")
            .addProcessor("third", Quiet::new, "apart")
            .connectProcessorAndStateStores("third", "kept")
            .addSource("alone", "d")
            .addSink("end", new ByValue(), "alone");
        return topology;
    }

    /** A processor that forwards nothing. */
    private static class Quiet implements Processor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
        }
    }
}
