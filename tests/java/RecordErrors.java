import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends six records in one batch, the second and the fifth without a key, and prints what each one's future says. */
public class RecordErrors {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("linger.ms", "60000");
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        try (Producer<String, String> producer = new KafkaProducer<>(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 6; i++)
                sent.add(producer.send(new ProducerRecord<>(arguments[1], 0, i == 1 || i == 4 ? null : "k", "v")));
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                try {
                    System.out.println("offset " + one.get().offset());
                } catch (ExecutionException error) {
                    Throwable cause = error.getCause();
                    System.out.println(cause.getClass().getSimpleName() + ": " + cause.getMessage());
                }
            }
        }
    }
}
