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
    private static final List<String> NAMES = List.of(
        "flights", "dc0.flights", "dc1.dc0.flights", "dc0_flights", "dc0--dc1--flights", ".hidden", "a.", "a..", "..",
        "a..b", "__consumer_offsets", "heartbeats", "dc0.heartbeats", "dc1_dc0_heartbeats", "myheartbeats",
        "mm2-offset-syncs.dc2.internal", "mm2-offset-syncs_dc2_internal", "mm2-configs.dc2.internal",
        "mm2--x--internal", "mm2-offsets-dc2-internal", "flights.internal", "dc1.checkpoints.internal",
        "dc1_checkpoints_internal", "dc1--checkpoints--internal", "dc0.dc1.checkpoints.internal");
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
            for (boolean internal : new boolean[] {true, false}) {
                policy(new DefaultReplicationPolicy(), separator, internal);
                policy(new IdentityReplicationPolicy(), separator, internal);
            }
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

    /** `policy CLASS SEPARATOR INTERNAL TOPIC SOURCE|UPSTREAM|ORIGINAL|OWN|INTERNAL|CHECKPOINTS|HEARTBEATS`. */
    private static void policy(DefaultReplicationPolicy policy, String separator, boolean internal) {
        policy.configure(Map.of("replication.policy.separator", separator, "source.cluster.alias", "dc1",
            "replication.policy.internal.topic.separator.enabled", "" + internal));
        String name = String.join(" ", policy.getClass().getSimpleName(), separator, "" + internal);
        System.out.println("topics " + name + " " + policy.offsetSyncsTopic("dc2") + "|" + policy.checkpointsTopic("dc1")
            + "|" + policy.heartbeatsTopic());
        for (String topic : NAMES) {
            System.out.println(String.join(" ", "policy", name, topic, String.join("|", policy.topicSource(topic),
                policy.upstreamTopic(topic), policy.originalTopic(topic), "" + policy.isMM2InternalTopic(topic),
                "" + policy.isInternalTopic(topic), "" + policy.isCheckpointsTopic(topic),
                "" + policy.isHeartbeatsTopic(topic))));
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
