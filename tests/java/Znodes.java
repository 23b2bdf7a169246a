// What the brokers of Apache Kafka 3 write into ZooKeeper, and what they read of what is there.
//
//     java -cp "$KAFKA_3_LIBS/*" tests/java/Znodes.java encode
//     java -cp "$KAFKA_3_LIBS/*" tests/java/Znodes.java decode < LINES
//
// `encode` prints a line for each value of tests/logd/metadata/zookeeper/test_znodes.py: its name, the path and
// the payload, which the test keeps in golden/znodes.txt and writes anew with REWRITE=1. `decode` takes lines of
// a name and a payload in base64, and prints what Kafka makes of each.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kafka.api.LeaderAndIsr;
import kafka.cluster.Broker;
import kafka.cluster.EndPoint;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.controller.ReplicaAssignment;
import kafka.zk.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.feature.Features;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.common.ProducerIdsBlock;
import org.apache.zookeeper.data.Stat;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

@SuppressWarnings({"unchecked", "rawtypes"})
public class Znodes {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final TopicPartition T0 = new TopicPartition("t", 0);
    private static final TopicPartition T1 = new TopicPartition("t", 1);

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("encode")) {
            encode();
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 2);
            OUT.println(words[0] + " " + decoded(words[0], Base64.getDecoder().decode(words[1])));
        }
    }

    private static void encode() {
        put("controller", ControllerZNode.path(), ControllerZNode.encode(1, 1700000000000L, -1));
        put("controller-epoch", ControllerEpochZNode.path(), ControllerEpochZNode.encode(7));
        put("cluster-id", ClusterIdZNode.path(), ClusterIdZNode.toJson("abcdefghijklmnop-_0123"));
        EndPoint plain = endPoint("PLAINTEXT", "broker-5", 9092, SecurityProtocol.PLAINTEXT);
        EndPoint outside = endPoint("EXTERNAL", "2001:db8::1", 9093, SecurityProtocol.SASL_SSL);
        put("broker", BrokerIdZNode.path(5), BrokerIdZNode.encode(broker(List.of(outside, plain), "r1")));
        put("broker-without-plaintext", BrokerIdZNode.path(6), BrokerIdZNode.encode(broker(List.of(outside), null)));
        Map<TopicPartition, ReplicaAssignment> assignment = new TreeMap<>((a, b) -> a.partition() - b.partition());
        assignment.put(T0, new ReplicaAssignment(ints(1, 2), ints(), ints()));
        assignment.put(T1, new ReplicaAssignment(ints(2, 3, 1), ints(3), ints(1)));
        Uuid id = Uuid.fromString("AQIDBAUGBwgJCgsMDQ4PEA");
        put("topic", TopicZNode.path("t"), TopicZNode.encode(Option.apply(id), CollectionConverters.asScala(assignment)));
        put("topic-without-id", TopicZNode.path("t"),
            TopicZNode.encode(Option.empty(), CollectionConverters.asScala(assignment)));
        put("partition", TopicPartitionZNode.path(T1), new byte[0]);
        put("state", TopicPartitionStateZNode.path(T1), state(1, 3, LeaderRecoveryState.RECOVERED, 2, 1));
        put("state-without-leader", TopicPartitionStateZNode.path(T0), state(-1, 4, LeaderRecoveryState.RECOVERED, 2));
        put("state-recovering", TopicPartitionStateZNode.path(T0), state(2, 5, LeaderRecoveryState.RECOVERING, 2));
        Properties configs = new Properties();
        configs.put("retention.ms", "1000");
        configs.put("cleanup.policy", "compact,delete");
        put("config", ConfigEntityZNode.path("topics", "t"), ConfigEntityZNode.encode(configs));
        put("config-default", ConfigEntityZNode.path("brokers", "<default>"), ConfigEntityZNode.encode(new Properties()));
        put("config-change", ConfigEntityChangeNotificationSequenceZNode.createPath(),
            ConfigEntityChangeNotificationSequenceZNode.encode("topics/t"));
        put("producer-ids", ProducerIdBlockZNode.path(),
            ProducerIdBlockZNode.generateProducerIdBlockJson(new ProducerIdsBlock(3, 5000, 1000)));
        put("reassign", ReassignPartitionsZNode.path(),
            ReassignPartitionsZNode.encode((scala.collection.Map) CollectionConverters.asScala(Map.of(T1, ints(2, 3)))));
        scala.collection.immutable.Set<TopicPartition> both =
            (scala.collection.immutable.Set) CollectionConverters.asScala(Set.of(T1)).toSet();
        put("preferred", PreferredReplicaElectionZNode.path(), PreferredReplicaElectionZNode.encode(both));
        put("isr-change", IsrChangeNotificationSequenceZNode.path(""), IsrChangeNotificationSequenceZNode.encode(both));
        put("delete-topic", DeleteTopicsTopicZNode.path("t"), new byte[0]);
        put("consumer-offset", ConsumerOffset.path("g", "t", 1), ConsumerOffset.encode(42L));
        put("broker-sequence", BrokerSequenceIdZNode.path(), new byte[0]);
        acl("acls", PatternType.LITERAL, ResourceType.TRANSACTIONAL_ID, "User:alice", AclOperation.READ);
        acl("prefixed-acls", PatternType.PREFIXED, ResourceType.TOPIC, "Group:ä", AclOperation.DESCRIBE_CONFIGS);
        for (ResourceType type : AclEntry.RESOURCE_TYPES.stream().sorted().toList())
            for (ZkAclStore store : CollectionConverters.asJava(ZkAclStore.stores()))
                put("for-acls", store.path(type), new byte[0]);
        for (ZkAclChangeStore store : CollectionConverters.asJava(ZkAclChangeStore.stores()))
            put("for-acls", store.aclChangePath(), new byte[0]);
        for (String path : CollectionConverters.asJava(ZkData.PersistentZkPaths()).stream().sorted().toList())
            put("persistent", path, new byte[0]);
    }

    private static void acl(String name, PatternType patternType, ResourceType type, String principal, AclOperation operation) {
        ResourcePattern pattern = new ResourcePattern(type, "name:1", patternType);
        AclEntry entry = new AclEntry(new AccessControlEntry(principal, "10.0.0.7", operation, AclPermissionType.DENY));
        scala.collection.immutable.Set<AclEntry> entries =
            (scala.collection.immutable.Set) CollectionConverters.asScala(Set.of(entry)).toSet();
        put(name, ResourceZNode.path(pattern), ResourceZNode.encode(entries));
        ZkAclChangeStore changes = ZkAclStore.apply(patternType).changeStore();
        put(name + "-change", changes.createPath(), changes.encode(pattern));
    }

    private static String decoded(String name, byte[] data) {
        Stat stat = new Stat();
        stat.setVersion(9);
        switch (name) {
            case "controller":
                ZKControllerRegistration found = ControllerZNode.decodeController(data, 9);
                return found.broker() + " " + found.kraftEpoch().get();
            case "controller-epoch":
                return "" + ControllerEpochZNode.decode(data);
            case "cluster-id":
                return ClusterIdZNode.fromJson(data);
            case "broker":
                BrokerInfo info = BrokerIdZNode.decode(5, data);
                return info.version() + " " + info.jmxPort() + " " + info.broker().rack() + " "
                    + CollectionConverters.asJava(info.broker().endPoints());
            case "topic":
                TopicZNode.TopicIdReplicaAssignment topic = TopicZNode.decode("t", data);
                return topic.topicId() + " " + CollectionConverters.asJava(topic.assignment()).entrySet().stream()
                    .map(each -> each.getKey() + "=" + each.getValue()).sorted().collect(Collectors.joining(", "));
            case "state":
                LeaderIsrAndControllerEpoch of = TopicPartitionStateZNode.decode(data, stat).get();
                LeaderAndIsr it = of.leaderAndIsr();
                return it.leader() + " " + it.leaderEpoch() + " " + CollectionConverters.asJava(it.isr()) + " "
                    + of.controllerEpoch() + " " + it.leaderRecoveryState() + " " + it.partitionEpoch();
            case "config":
                return "" + new TreeMap<>(ConfigEntityZNode.decode(data));
            case "producer-ids":
                ProducerIdsBlock block = ProducerIdBlockZNode.parseProducerIdBlockData(data);
                return block.assignedBrokerId() + " " + block.firstProducerId() + " " + block.lastProducerId();
            case "reassign":
                return "" + CollectionConverters.asJava(ReassignPartitionsZNode.decode(data).toOption().get());
            case "preferred":
                return "" + CollectionConverters.asJava(PreferredReplicaElectionZNode.decode(data));
            case "isr-change":
                return "" + CollectionConverters.asJava(IsrChangeNotificationSequenceZNode.decode(data));
            case "acls":
            case "prefixed-acls":
                return "" + CollectionConverters.asJava(ResourceZNode.decode(data, stat).acls());
            case "acls-change":
                return "" + ZkAclStore.apply(PatternType.LITERAL).changeStore().decode(data);
            case "prefixed-acls-change":
                return "" + ZkAclStore.apply(PatternType.PREFIXED).changeStore().decode(data);
            case "consumer-offset":
                return "" + ConsumerOffset.decode(data).get();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static void put(String name, String path, byte[] payload) {
        OUT.println(name + " " + path + " " + (payload == null ? "" : new String(payload, StandardCharsets.UTF_8)));
    }

    private static BrokerInfo broker(List<EndPoint> endPoints, String rack) {
        return new BrokerInfo(
            new Broker(5, CollectionConverters.asScala(endPoints).toSeq(), Option.apply(rack), Features.emptySupportedFeatures()),
            5, -1);
    }

    private static EndPoint endPoint(String listener, String host, int port, SecurityProtocol protocol) {
        return new EndPoint(host, port, new ListenerName(listener), protocol);
    }

    private static byte[] state(int leader, int epoch, LeaderRecoveryState recovery, Integer... isr) {
        LeaderAndIsr of = LeaderAndIsr.apply(leader, epoch, (scala.collection.immutable.List) ints(isr).toList(), recovery, 0);
        return TopicPartitionStateZNode.encode(new LeaderIsrAndControllerEpoch(of, 4));
    }

    private static scala.collection.Seq<Object> ints(Integer... numbers) {
        return CollectionConverters.asScala(new ArrayList<Object>(Arrays.asList(numbers))).toSeq();
    }
}
