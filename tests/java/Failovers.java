// Kafka's own client while brokers fail: tests/faults/cluster/clients/speech.py says what it is told and what it says.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Failovers.java write|read SERVERS TOPIC PARTITIONS|GROUP

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Failovers {
    private static final int AT_ONCE = 10;
    private static final int PAUSE_MS = 100;
    private static final int WAITING_MAX = 1000;
    private static final int DELIVERY_MS = 180_000;
    private static final Duration POLL = Duration.ofMillis(200);
    private static volatile boolean isOver;
    private static volatile Exception lost;

    public static void main(String[] arguments) throws Exception {
        Thread ear = new Thread(Failovers::listen);
        ear.setDaemon(true);
        ear.start();
        if (arguments[0].equals("write"))
            write(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
        else
            read(arguments[1], arguments[2], arguments[3]);
    }

    /** It is over when stdin ends. */
    private static void listen() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (IOException e) {
            // It has ended.
        }
        isOver = true;
    }

    private static void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words)
            line.append(line.isEmpty() ? "" : " ").append(word);
        byte[] bytes = line.append('\n').toString().getBytes(StandardCharsets.UTF_8);
        System.out.write(bytes, 0, bytes.length);
        System.out.flush();
    }

    private static void write(String servers, String topic, int partitions) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("linger.ms", 1);
        settings.put("delivery.timeout.ms", DELIVERY_MS);
        settings.put("max.block.ms", DELIVERY_MS);
        AtomicInteger waiting = new AtomicInteger();
        int sent = 0;
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            while (!isOver && lost == null) {
                Thread.sleep(PAUSE_MS);
                for (int i = 0; i < AT_ONCE && waiting.get() < WAITING_MAX; i++) {
                    int number = sent++;
                    waiting.incrementAndGet();
                    producer.send(new ProducerRecord<>(topic, number % partitions, null, "" + number), (where, error) -> {
                        waiting.decrementAndGet();
                        if (error == null)
                            say("acked", number, where.partition(), where.offset());
                        else
                            lost = error;
                    });
                }
            }
        }
        if (lost != null)
            throw lost;
        say("sent", sent);
    }

    private static void read(String servers, String topic, String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", 6000);
        settings.put("heartbeat.interval.ms", 600);
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!isOver) {
                Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    say("read", record.partition(), record.offset(), record.value());
                    var partition = new TopicPartition(topic, record.partition());
                    ends.put(partition, new OffsetAndMetadata(record.offset() + 1));
                }
                commit(consumer, ends);
            }
        }
    }

    /** Says what was done; what was not is the next commit's. */
    private static void commit(KafkaConsumer<String, String> consumer, Map<TopicPartition, OffsetAndMetadata> ends) {
        if (ends.isEmpty())
            return;
        try {
            consumer.commitSync(ends);
        } catch (CommitFailedException | RebalanceInProgressException | TimeoutException e) {
            return;
        }
        ends.forEach((partition, end) -> say("committed", partition.partition(), end.offset()));
    }
}
