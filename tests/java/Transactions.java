// Transactions as the Java client makes them: commit and abort, fencing, timeout, offsets, many in a row.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Transactions.java HOST:PORT TOPIC
//
// TOPIC has three partitions and is empty; a topic is made of it for each scenario by appending its name, and
// these exist already. Prints "passed NAME" for every scenario; the first that fails ends it with an exception.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactions {
    private static final Duration SECONDS = Duration.ofSeconds(30);
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        String prefix = arguments[1];
        commitAndAbort(prefix + "-ends");
        many(prefix + "-many");
        fencing(prefix + "-fencing");
        timeout(prefix + "-timeout");
        offsets(prefix + "-offsets");
    }

    private static void commitAndAbort(String topic) throws Exception {
        try (KafkaProducer<String, String> producer = producer(topic, 60_000)) {
            for (String name : List.of("a", "b", "c")) {
                producer.beginTransaction();
                for (int partition = 0; partition < 3; partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, null, name + partition));
                }
                if (name.equals("b")) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        expect(topic, List.of("a0", "a1", "a2", "c0", "c1", "c2"), List.of("b0", "b1", "b2"));
        passed("ends");
    }

    /** Each in its own producer epoch where the broker has transaction version 2; the test looks at the files. */
    private static void many(String topic) {
        List<String> committed = new ArrayList<>();
        List<String> aborted = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer(topic, 60_000)) {
            for (int turn = 0; turn < 30; turn++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, turn % 3, null, "turn " + turn));
                if (turn % 3 == 1) {
                    producer.flush();
                    producer.abortTransaction();
                    aborted.add("turn " + turn);
                } else {
                    producer.commitTransaction();
                    committed.add("turn " + turn);
                }
            }
            producer.beginTransaction(); // nothing written: nothing to tell the broker
            producer.commitTransaction();
        }
        expect(topic, committed, aborted);
        passed("many");
    }

    private static void fencing(String topic) throws Exception {
        try (KafkaProducer<String, String> zombie = producer(topic, 60_000)) {
            zombie.beginTransaction();
            zombie.send(new ProducerRecord<>(topic, 0, null, "zombie")).get();
            try (KafkaProducer<String, String> heir = producer(topic, 60_000)) {
                heir.beginTransaction();
                heir.send(new ProducerRecord<>(topic, 0, null, "heir")).get();
                try {
                    zombie.commitTransaction();
                    throw new IllegalStateException("the zombie committed");
                } catch (ProducerFencedException | InvalidProducerEpochException expected) {
                    heir.commitTransaction();
                }
            }
        }
        expect(topic, List.of("heir"), List.of("zombie"));
        passed("fencing");
    }

    private static void timeout(String topic) throws Exception {
        try (KafkaProducer<String, String> slow = producer(topic, 1000)) {
            slow.beginTransaction();
            slow.send(new ProducerRecord<>(topic, 0, null, "slow")).get();
            try (KafkaProducer<String, String> other = producer(topic + "-other", 60_000)) {
                other.beginTransaction();
                other.send(new ProducerRecord<>(topic, 0, null, "other"));
                other.commitTransaction();
            }
            expect(topic, List.of("other"), List.of("slow"));
            try {
                slow.commitTransaction();
                throw new IllegalStateException("committed after its timeout");
            } catch (KafkaException expected) {
                // Fenced by the coordinator, or told to abort: either will do.
            }
        }
        expect(topic, List.of("other"), List.of("slow"));
        passed("timeout");
    }

    private static void offsets(String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = producer(topic, 60_000);
                KafkaConsumer<String, String> consumer = consumer("group-" + topic, true)) {
            producer.beginTransaction();
            for (int number = 0; number < 10; number++) {
                producer.send(new ProducerRecord<>(topic, 0, null, "" + number));
            }
            producer.commitTransaction();
            consumer.subscribe(List.of(topic));
            int received = 0;
            for (long end = System.nanoTime() + SECONDS.toNanos(); received < 10; ) {
                received += consumer.poll(Duration.ofMillis(200)).count();
                check(System.nanoTime() < end, "received only " + received);
            }
            ConsumerGroupMetadata group = consumer.groupMetadata();
            Map<TopicPartition, OffsetAndMetadata> positions =
                Map.of(partition, new OffsetAndMetadata(consumer.position(partition), "größe"));
            for (boolean commits : new boolean[] {false, true}) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 1, null, commits ? "result" : "nothing"));
                producer.sendOffsetsToTransaction(positions, group);
                if (commits) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                // The Java client asks for stable offsets: no answer before the markers are written.
                OffsetAndMetadata found = consumer.committed(Set.of(partition), SECONDS).get(partition);
                OffsetAndMetadata expected = commits ? positions.get(partition) : null;
                check(found == null ? expected == null : expected != null
                    && found.offset() == expected.offset() && found.metadata().equals("größe"), "committed " + found);
            }
        }
        List<String> committed = new ArrayList<>(List.of("result"));
        for (int number = 0; number < 10; number++) {
            committed.add("" + number);
        }
        List<String> all = read(topic, false);
        check(all.containsAll(committed), "all " + all);
        expect(topic, committed, all.contains("nothing") ? List.of("nothing") : List.of());
        passed("offsets");
    }

    private static KafkaProducer<String, String> producer(String transactionalId, int timeoutMs) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", timeoutMs);
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    private static KafkaConsumer<String, String> consumer(String group, boolean committed) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("fetch.max.wait.ms", 50);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    /** All values there are in the three partitions, up to where may be read. */
    private static List<String> read(String topic, boolean committed) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("unused", committed)) {
            List<TopicPartition> all =
                List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1), new TopicPartition(topic, 2));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (all.stream().anyMatch(some -> consumer.position(some) < ends.get(some))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(record.value());
                }
            }
        }
        Collections.sort(values);
        return values;
    }

    /** A commit is acknowledged before its markers are written: look until they are. */
    private static void expect(String topic, List<String> committed, List<String> aborted) {
        List<String> all = new ArrayList<>(committed);
        all.addAll(aborted);
        look(() -> read(topic, true), committed);
        look(() -> read(topic, false), all);
    }

    private static void look(Supplier<List<String>> read, List<String> values) {
        List<String> expected = new ArrayList<>(values);
        Collections.sort(expected);
        List<String> found = read.get();
        for (long end = System.nanoTime() + SECONDS.toNanos(); !found.equals(expected); found = read.get()) {
            check(System.nanoTime() < end, found + " instead of " + expected);
        }
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }

    private static void passed(String name) {
        System.out.println("passed " + name);
    }
}
