// Answers about a cluster by Kafka's MirrorClient and RemoteClusterUtils.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/MirrorClients.java BOOTSTRAP SOURCE GROUP PATTERN
//
// Each line is a question and its answer; sets are sorted and separated by commas.

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class MirrorClients {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", arguments[0]);
        String source = arguments[1];
        try (MirrorClient client = new MirrorClient(properties)) {
            print("heartbeat_topics", client.heartbeatTopics());
            print("checkpoint_topics", client.checkpointTopics());
            print("upstream_clusters", client.upstreamClusters());
            print("remote_topics", client.remoteTopics());
            print("remote_topics " + source, client.remoteTopics(source));
            System.out.println("hops " + client.replicationHops(source) + " " + client.replicationHops("nowhere"));
            print("group", client.remoteConsumerOffsets(arguments[2], source, TIMEOUT));
            for (var group : new TreeMap<>(client.remoteConsumerOffsets(Pattern.compile(arguments[3]), source, TIMEOUT)).entrySet()) {
                print("matching " + group.getKey(), group.getValue());
            }
        }
        print("group", RemoteClusterUtils.translateOffsets(properties, source, arguments[2], TIMEOUT));
    }

    private static void print(String question, Set<String> answer) {
        System.out.println(question + " " + String.join(",", new TreeSet<>(answer)));
    }

    private static void print(String question, Map<TopicPartition, OffsetAndMetadata> offsets) {
        Set<String> texts = new TreeSet<>();
        offsets.forEach((tp, position) -> texts.add(tp + "=" + position.offset() + position.metadata()));
        print(question, texts);
    }
}
