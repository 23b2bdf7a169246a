import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** application.py on Kafka Streams, with one thread; the same arguments, and the same line of JSON. */
public class StreamsRestore {
    static final AtomicLong RESTORED = new AtomicLong();
    static final AtomicLong BEGUN = new AtomicLong();
    static final AtomicLong BEGUN_CPU = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>table("records", Materialized.as("state"));
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
        CountDownLatch running = new CountDownLatch(1);
        streams.setGlobalStateRestoreListener(new Counted());
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING && (BEGUN.get() > 0 || arguments[0].equals("fill")))
                running.countDown();
        });
        streams.start();
        running.await();
        long seconds = System.nanoTime() - BEGUN.get();
        long cpu = cpu() - BEGUN_CPU.get();
        if (arguments[0].equals("fill"))
            waitFor(streams, Long.parseLong(arguments[4]));
        else
            System.out.printf(
                "{\"records\": %d, \"seconds\": %f, \"cpu\": %f}%n", RESTORED.get(), seconds / 1e9, cpu / 1e9);
        streams.close(Duration.ofSeconds(60));
    }

    static void waitFor(KafkaStreams streams, long all) throws InterruptedException {
        double taken = 0;
        while (taken < all) {
            Thread.sleep(100);
            taken = 0;
            for (Map.Entry<MetricName, ? extends Metric> each : streams.metrics().entrySet())
                if (each.getKey().name().equals("process-total")
                    && each.getKey().group().equals("stream-thread-metrics"))
                    taken += (Double) each.getValue().metricValue();
        }
    }

    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    static class Counted implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            if (BEGUN.compareAndSet(0, System.nanoTime()))
                BEGUN_CPU.set(cpu());
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long records) {}

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            RESTORED.addAndGet(total);
        }
    }
}
