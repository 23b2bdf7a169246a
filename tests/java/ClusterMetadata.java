// Prints what a broker of Kafka 3 with ZooKeeper tells clients of partitions, by its ZkMetadataCache:
// tests/logd/api_cluster/golden/metadata.txt, to which tests/logd/api_cluster/test_kafkas_metadata.py holds ours.
//
//     java -cp "$KAFKA_3_LIBS/*" tests/java/ClusterMetadata.java > tests/logd/api_cluster/golden/metadata.txt
//
// First, by listener, the brokers that are told. Then a line a partition and a kind of client: what the
// controller says (leader, replicas, ISR, replicas in folders that failed), the listener, the Metadata version,
// and what the client is told: error, leader, leader epoch, replicas, ISR, offline replicas. `-` is none.

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import kafka.server.BrokerFeatures;
import kafka.server.metadata.ZkMetadataCache;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataBroker;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataEndpoint;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataPartitionState;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.UpdateMetadataRequest;
import org.apache.kafka.server.common.MetadataVersion;
import scala.jdk.javaapi.CollectionConverters;

public class ClusterMetadata {
    private static final int PARTITIONS = 60;
    private static final int[] VERSIONS = {0, 1, 5, 6, 12};
    private static final String[] LISTENERS = {"EXTERNAL", "INTERNAL"};

    public static void main(String[] arguments) {
        Random random = new Random(5);
        List<UpdateMetadataPartitionState> states = new ArrayList<>();
        List<List<Integer>> failed = new ArrayList<>();
        for (int index = 0; index < PARTITIONS; index++) {
            List<Integer> replicas = some(List.of(1, 2, 3, 4), 1 + random.nextInt(4), random);
            List<Integer> inSync = some(replicas, 1 + random.nextInt(replicas.size()), random);
            int leader = random.nextInt(5) == 0 ? -1 : inSync.get(0);
            List<Integer> folders = random.nextInt(3) == 0 ? some(replicas, 1, random) : List.of();
            List<Integer> offline = replicas.stream().filter(id -> id == 4 || folders.contains(id)).collect(Collectors.toList());
            failed.add(folders);
            states.add(new UpdateMetadataPartitionState().setTopicName("t").setPartitionIndex(index)
                .setLeader(leader).setLeaderEpoch(index + 3).setReplicas(replicas).setIsr(inSync).setOfflineReplicas(offline));
        }
        ZkMetadataCache cache = new ZkMetadataCache(1, MetadataVersion.latestProduction(), BrokerFeatures.createEmpty(), false);
        List<UpdateMetadataBroker> brokers = List.of(
            broker(1, "EXTERNAL", "INTERNAL"), broker(2, "EXTERNAL", "INTERNAL"), broker(3, "INTERNAL"));
        short version = ApiKeys.UPDATE_METADATA.latestVersion();
        cache.updateMetadata(1, new UpdateMetadataRequest.Builder(
            version, 2, 1, 1, states, brokers, Map.of("t", Uuid.randomUuid())).build(version));
        for (String listener : LISTENERS) {
            List<Node> nodes = new ArrayList<>(CollectionConverters.asJava(cache.getAliveBrokerNodes(new ListenerName(listener)).toSeq()));
            nodes.sort((a, b) -> a.id() - b.id());
            System.out.println("brokers " + listener + " " + nodes.stream()
                .map(node -> node.id() + ":" + node.host() + ":" + node.port() + ":" + node.rack()).collect(Collectors.joining(",")));
        }
        for (String listener : LISTENERS) {
            for (int asked : VERSIONS) {
                print(cache, listener, asked, states, failed);
            }
        }
    }

    private static void print(ZkMetadataCache cache, String listener, int version, List<UpdateMetadataPartitionState> states, List<List<Integer>> failed) {
        // As KafkaApis asks for it: errors by the version of the request.
        List<MetadataResponsePartition> told = new ArrayList<>(CollectionConverters.asJava(cache.getTopicMetadata(
            CollectionConverters.asScala(Collections.singleton("t")), new ListenerName(listener), version == 0, version >= 6)).get(0).partitions());
        told.sort((a, b) -> a.partitionIndex() - b.partitionIndex());
        for (MetadataResponsePartition row : told) {
            UpdateMetadataPartitionState state = states.get(row.partitionIndex());
            System.out.println(String.join(" ", "" + state.leader(), ids(state.replicas()), ids(state.isr()),
                ids(failed.get(row.partitionIndex())), listener, "" + version, "" + row.errorCode(), "" + row.leaderId(),
                "" + row.leaderEpoch(), ids(row.replicaNodes()), ids(row.isrNodes()), ids(row.offlineReplicas())));
        }
    }

    private static String ids(List<Integer> ids) {
        return ids.isEmpty() ? "-" : ids.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    private static List<Integer> some(List<Integer> from, int count, Random random) {
        List<Integer> shuffled = new ArrayList<>(from);
        Collections.shuffle(shuffled, random);
        return shuffled.subList(0, count);
    }

    private static UpdateMetadataBroker broker(int id, String... listeners) {
        List<UpdateMetadataEndpoint> endpoints = new ArrayList<>();
        for (String listener : listeners) {
            boolean isExternal = listener.equals("EXTERNAL");
            endpoints.add(new UpdateMetadataEndpoint().setListener(listener).setSecurityProtocol((short) 0)
                .setHost((isExternal ? "out" : "in") + id).setPort(isExternal ? 9092 : 9093));
        }
        return new UpdateMetadataBroker().setId(id).setRack("r" + id).setEndpoints(endpoints);
    }
}
