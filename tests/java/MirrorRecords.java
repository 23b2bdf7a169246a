// Writes and reads MirrorMaker 2's records with Kafka's classes, for tests/mirror/records/test_against_java.py.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/MirrorRecords.java
//
// A line of its input is one question, its fields parted by tabs; strings are hexadecimal UTF-8. It prints a line each:
//     sync TOPIC PARTITION UPSTREAM DOWNSTREAM                    KEY VALUE
//     checkpoint GROUP TOPIC PARTITION UPSTREAM DOWNSTREAM METADATA    KEY VALUE
//     heartbeat SOURCE TARGET TIMESTAMP                           KEY VALUE
//     read-sync | read-checkpoint | read-heartbeat KEY VALUE      the fields as above, or `refused`

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.OffsetSync;

public class MirrorRecords {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> answers = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.add(answer(line.split("\t", -1)));
        }
        System.out.println(String.join("\n", answers));
    }

    private static String answer(String[] f) throws Exception {
        return switch (f[0]) {
            case "sync" -> bytes(new OffsetSync(tp(f[1], f[2]), Long.parseLong(f[3]), Long.parseLong(f[4])));
            case "checkpoint" -> bytes(new Checkpoint(
                text(f[1]), tp(f[2], f[3]), Long.parseLong(f[4]), Long.parseLong(f[5]), text(f[6])));
            case "heartbeat" -> bytes(new Heartbeat(text(f[1]), text(f[2]), Long.parseLong(f[3])));
            default -> read(f[0], new ConsumerRecord<>("t", 0, 0, unhex(f[1]), unhex(f[2])));
        };
    }

    private static String read(String kind, ConsumerRecord<byte[], byte[]> record) {
        try {
            if (kind.equals("read-sync")) {
                OffsetSync sync = OffsetSync.deserializeRecord(record);
                return fields(hex(sync.topicPartition().topic()), sync.topicPartition().partition(),
                    sync.upstreamOffset(), sync.downstreamOffset());
            }
            if (kind.equals("read-checkpoint")) {
                Checkpoint point = Checkpoint.deserializeRecord(record);
                return fields(hex(point.consumerGroupId()), hex(point.topicPartition().topic()),
                    point.topicPartition().partition(), point.upstreamOffset(), point.downstreamOffset(),
                    hex(point.metadata()));
            }
            Heartbeat beat = Heartbeat.deserializeRecord(record);
            return fields(hex(beat.sourceClusterAlias()), hex(beat.targetClusterAlias()), beat.timestamp());
        } catch (RuntimeException | AssertionError e) {
            return "refused";
        }
    }

    private static String bytes(Object record) throws Exception {
        return fields(part(record, "recordKey"), part(record, "recordValue"));
    }

    private static String part(Object record, String method) throws Exception {
        Method found = record.getClass().getDeclaredMethod(method);
        found.setAccessible(true);
        return HexFormat.of().formatHex((byte[]) found.invoke(record));
    }

    private static String fields(Object... fields) {
        List<String> texts = new ArrayList<>();
        for (Object field : fields) {
            texts.add(String.valueOf(field));
        }
        return String.join("\t", texts);
    }

    private static TopicPartition tp(String topic, String partition) {
        return new TopicPartition(text(topic), Integer.parseInt(partition));
    }

    private static String text(String hexadecimal) {
        return new String(unhex(hexadecimal), StandardCharsets.UTF_8);
    }

    private static byte[] unhex(String hexadecimal) {
        return HexFormat.of().parseHex(hexadecimal);
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
