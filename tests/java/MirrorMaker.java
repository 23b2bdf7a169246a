// Prints what Kafka's MirrorMaker writes and decides: offset syncs, names of topics, and which topics and configs
// its filters take by default.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/MirrorMaker.java
//
// What it prints is kept in tests/mirror/golden/mirrormaker.txt; tests/mirror/test_mirrormaker.py holds ours to it,
// and writes it anew with REWRITE=1.

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.DefaultTopicFilter;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;
import org.apache.kafka.connect.mirror.OffsetSync;

public class MirrorMaker {
    private static final List<String> TOPICS = List.of(
        "flights", "flights.internal", "flights-internal", "flights_internal", "internal", "a.replica", "replica",
        "__consumer_offsets", "_schemas", "dc1.flights", "mm2-offset-syncs.dc2.internal", "heartbeats",
        "dc1.heartbeats", "dc1.checkpoints.internal", "INTERNAL.internal.x");
    private static final List<String> CONFIGS = List.of(
        "retention.ms", "cleanup.policy", "min.insync.replicas", "message.timestamp.type", "min.compaction.lag.ms",
        "message.timestamp.difference.max.ms", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms",
        "unclean.leader.election.enable", "follower.replication.throttled.replicas", "compression.type",
        "leader.replication.throttled.replicas", "max.message.bytes");

    public static void main(String[] arguments) throws Exception {
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8));
        for (String topic : List.of("flights", "fl\u00fcge", "a.b-c_d")) {
            for (int partition : new int[] {0, 3, Integer.MAX_VALUE}) {
                sync(topic, partition, 1000, 400);
            }
            sync(topic, 1, 0, 0);
            sync(topic, 1, Long.MAX_VALUE, -1);
        }
        for (String separator : List.of(".", "_", "--")) {
            names(separator);
        }
        DefaultTopicFilter topics = new DefaultTopicFilter();
        topics.configure(Map.of());
        for (String topic : TOPICS) {
            System.out.println("topic " + topic + " " + topics.shouldReplicateTopic(topic));
        }
        DefaultConfigPropertyFilter configs = new DefaultConfigPropertyFilter();
        configs.configure(Map.of());
        for (String key : CONFIGS) {
            System.out.println("config " + key + " " + configs.shouldReplicateConfigProperty(key));
        }
    }

    /** `sync TOPIC PARTITION UPSTREAM DOWNSTREAM KEY VALUE`, key and value in hexadecimal. */
    private static void sync(String topic, int partition, long upstream, long downstream) throws Exception {
        OffsetSync sync = new OffsetSync(new TopicPartition(topic, partition), upstream, downstream);
        System.out.println(String.join(" ", "sync", topic, "" + partition, "" + upstream, "" + downstream,
            bytes(sync, "recordKey"), bytes(sync, "recordValue")));
    }

    private static String bytes(OffsetSync sync, String method) throws Exception {
        Method found = OffsetSync.class.getDeclaredMethod(method);
        found.setAccessible(true);
        return HexFormat.of().formatHex((byte[]) found.invoke(sync));
    }

    /** `remote POLICY SEPARATOR SOURCE TOPIC NAME`, and `syncs SEPARATOR CLUSTER NAME`. */
    private static void names(String separator) {
        Map<String, Object> settings = new HashMap<>(Map.of("replication.policy.separator", separator));
        DefaultReplicationPolicy policy = new DefaultReplicationPolicy();
        policy.configure(settings);
        IdentityReplicationPolicy identity = new IdentityReplicationPolicy();
        identity.configure(settings);
        for (String topic : List.of("flights", "dc0.flights", "a_b", "__x")) {
            System.out.println(String.join(" ", "remote", "DefaultReplicationPolicy", separator, "dc1", topic,
                policy.formatRemoteTopic("dc1", topic)));
            System.out.println(String.join(" ", "remote", "IdentityReplicationPolicy", separator, "dc1", topic,
                identity.formatRemoteTopic("dc1", topic)));
        }
        System.out.println(String.join(" ", "syncs", separator, "dc2", policy.offsetSyncsTopic("dc2")));
    }
}
