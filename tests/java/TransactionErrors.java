// What the Java producer makes of every error code of every request of a transaction.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/TransactionErrors.java HOST:PORT HOST:PORT [EVERY]
//
// EVERY: only the first of so many cases in a row.
//
// The first broker has transaction version 1, the second 2. Their topic "t" has one partition at least. They
// answer the first request that a transactional id names, "VERSION/REQUEST/CODE", with that error code, and
// all else as they should; the group has the same name. Prints "VERSION REQUEST CODE'S NAME OUTCOME" each:
//
//     passed       the transaction was committed all the same
//     abortable    it could be aborted, and the next one was committed
//     rebalanced   the same, by an error that says that the consumer is no member any more
//     fenced       abort fails, too: another producer has the transactional id
//     fatal        abort fails, too, for any other reason
//     unbegun      initTransactions has failed; it may be called again, and has to be

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringSerializer;

public class TransactionErrors {
    private static final List<String> REQUESTS = List.of(
            "FindCoordinator", "FindGroupCoordinator", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn",
            "TxnOffsetCommit", "Produce", "EndTxn");
    private static final List<String> ONLY_IN_1 = List.of("AddPartitionsToTxn", "AddOffsetsToTxn");
    private static final List<String> OF_ANY_VERSION = List.of("FindCoordinator", "FindGroupCoordinator");
    private static final int AT_ONCE = 16;
    /** So long sendOffsetsToTransaction waits after a fatal error of the group's lookup, which does not end it. */
    private static final int MAX_BLOCK_MS = 8_000;

    public static void main(String[] arguments) throws Exception {
        int every = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1;
        int number = 0;
        ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<String>> lines = new ArrayList<>();
        for (int version = 1; version <= 2; version++) {
            for (String request : REQUESTS) {
                if ((version == 2 ? ONLY_IN_1 : OF_ANY_VERSION).contains(request)) {
                    continue;
                }
                for (Errors error : Errors.values()) {
                    if (error != Errors.NONE && number++ % every == 0) {
                        String broker = arguments[version - 1];
                        String name = version + "/" + request + "/" + error.code();
                        String told = version + " " + request + " " + error.name() + " ";
                        lines.add(threads.submit(() -> told + outcome(broker, name)));
                    }
                }
            }
        }
        threads.shutdown();
        for (Future<String> line : lines) {
            System.out.println(line.get());
        }
    }

    private static String outcome(String broker, String name) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", broker,
                "transactional.id", name,
                "max.block.ms", MAX_BLOCK_MS,
                "retry.backoff.ms", 1,
                "retry.backoff.max.ms", 5,
                "reconnect.backoff.ms", 1,
                "reconnect.backoff.max.ms", 5,
                "enable.metrics.push", false);
        KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        try {
            producer.initTransactions();
            transaction(producer, name);
            return "passed";
        } catch (KafkaException error) {
            return afterAbort(producer, name, error);
        } finally {
            producer.close(Duration.ZERO); // after some errors it would wait for ever
        }
    }

    private static void transaction(KafkaProducer<String, String> producer, String group) {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>("t", 0, null, "value"));
        producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition("in", 0), new OffsetAndMetadata(5)),
                new ConsumerGroupMetadata(group, 3, "member", Optional.empty()));
        producer.commitTransaction();
    }

    private static String afterAbort(KafkaProducer<String, String> producer, String name, KafkaException error) {
        try {
            producer.abortTransaction();
        } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
            return "fenced";
        } catch (IllegalStateException unbegun) {
            return "unbegun";
        } catch (KafkaException fatal) {
            return "fatal";
        }
        try {
            transaction(producer, name);
        } catch (IllegalStateException unbegun) {
            return "unbegun";
        }
        boolean rebalanced = error instanceof CommitFailedException || error.getCause() instanceof CommitFailedException;
        return rebalanced ? "rebalanced" : "abortable";
    }
}
