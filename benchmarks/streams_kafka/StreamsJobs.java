import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The jobs of jobs.py on Kafka Streams, with one thread. Arguments: job, bootstrap servers, application id, state
 * folder, how many records there are to take in at least, then settings, each key=value. Ten times a second it prints
 * how many it has taken in, and it ends once these are all and no more come for two seconds.
 */
public class StreamsJobs {
    static final TimeWindows TUMBLING = TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10));

    public static void main(String[] arguments) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        build(builder, arguments[0]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        settings.put("application.id", arguments[2]);
        settings.put("state.dir", arguments[3]);
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        settings.put("num.stream.threads", 1);
        settings.put("replication.factor", 1);
        for (String setting : Arrays.copyOfRange(arguments, 5, arguments.length)) {
            String[] pair = setting.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            System.exit(1);
            return null;
        });
        streams.start();
        long all = Long.parseLong(arguments[4]);
        long done = 0;
        for (int still = 0; done < all || still < 20; ) {
            Thread.sleep(100);
            long now = taken(streams);
            still = now == done ? still + 1 : 0;
            done = now;
            System.out.println("{\"records_in\": " + done + "}");
        }
        streams.close(Duration.ofSeconds(30));
    }

    static long taken(KafkaStreams streams) {
        double taken = 0;
        for (Map.Entry<MetricName, ? extends Metric> each : streams.metrics().entrySet())
            if (each.getKey().name().equals("process-total") && each.getKey().group().equals("stream-thread-metrics"))
                taken += (Double) each.getValue().metricValue();
        return (long) taken;
    }

    static void build(StreamsBuilder builder, String job) {
        switch (job) {
            case "stateless" -> builder.<String, String>stream("events")
                .map((key, value) -> new KeyValue<>(key, value.toUpperCase(Locale.ROOT)))
                .filter((key, value) -> value.charAt(0) < 'N')
                .to("out");
            case "table_join" -> {
                KTable<String, String> users = builder.table("users");
                builder.<String, String>stream("events").join(users, (event, user) -> event + " " + user).to("out");
            }
            case "word_count" -> wordCount(builder, Materialized.as("counts"));
            case "word_count_uncached" -> wordCount(
                builder,
                Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withCachingDisabled());
            case "tumbling" -> write(grouped(builder).windowedBy(TUMBLING).count(Materialized.as("counts")));
            case "hopping" -> write(grouped(builder)
                .windowedBy(TUMBLING.advanceBy(Duration.ofSeconds(2)))
                .count(Materialized.as("counts")));
            case "sessions" -> write(grouped(builder)
                .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(5)))
                .count(Materialized.as("counts")));
            case "suppressed" -> write(grouped(builder)
                .windowedBy(TUMBLING)
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts").withKeySerde(Serdes.String()))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())));
            case "stream_join" -> {
                KStream<String, String> others = builder.stream("others");
                builder.<String, String>stream("events")
                    .join(
                        others,
                        (event, other) -> event + " " + other,
                        JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(1)))
                    .to("out");
            }
            case "foreign_join" -> {
                KTable<String, String> users = builder.table("users");
                builder.<String, String>table("orders")
                    .<String, String, String>join(
                        users,
                        order -> order.substring(0, order.indexOf('|')),
                        (order, user) -> order + " " + user,
                        Materialized.as("joined"))
                    .toStream()
                    .to("out");
            }
            default -> throw new IllegalArgumentException(job);
        }
    }

    static void wordCount(StreamsBuilder builder, Materialized<String, Long, KeyValueStore<Bytes, byte[]>> store) {
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(store)
            .toStream()
            .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
    }

    static KGroupedStream<String, String> grouped(StreamsBuilder builder) {
        return builder.<String, String>stream("events").groupByKey();
    }

    static void write(KTable<Windowed<String>, Long> counts) {
        counts.toStream((window, count) -> window.key()).to("counts", Produced.with(Serdes.String(), Serdes.Long()));
    }
}
