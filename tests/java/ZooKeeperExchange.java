// A broker of Apache Kafka 3, as far as ZooKeeper sees it: its own client, which reads and writes the cluster's
// metadata, for tests/logd/metadata/zookeeper/test_exchange.py.
//
//     java -cp "$KAFKA_3_LIBS/*" tests/java/ZooKeeperExchange.java read|write CONNECT
//
// `read` prints what it finds. `write` stands for controller, creates a topic as a controller does, changes
// settings as tools do, and prints the controller's epoch and the version of its znode.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import kafka.api.LeaderAndIsr;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.zk.AdminZkClient;
import kafka.zk.KafkaZkClient;
import kafka.zk.TopicZNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.zookeeper.client.ZKClientConfig;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

@SuppressWarnings({"unchecked", "rawtypes"})
public class ZooKeeperExchange {
    public static void main(String[] arguments) {
        KafkaZkClient client = KafkaZkClient.apply(arguments[1], false, 10000, 30000, 10, Time.SYSTEM, "exchange",
            new ZKClientConfig(), "kafka.server", "SessionExpireListener", true, false);
        try {
            if (arguments[0].equals("read"))
                read(client);
            else
                write(client);
        } finally {
            client.close();
        }
    }

    private static void read(KafkaZkClient client) {
        System.out.println("cluster " + client.getClusterId().get());
        System.out.println("controller " + client.getControllerId().get());
        System.out.println("epoch " + client.getControllerEpoch().get()._1());
        System.out.println("brokers " + CollectionConverters.asJava(client.getAllBrokersInCluster()));
        System.out.println("deletions " + CollectionConverters.asJava(client.getTopicDeletions()));
        scala.collection.immutable.Set<String> names = client.getAllTopicsInCluster(false);
        for (TopicZNode.TopicIdReplicaAssignment topic
                : CollectionConverters.asJava(client.getReplicaAssignmentAndTopicIdForTopics(names))) {
            System.out.println("topic " + topic.topic() + " " + topic.topicId().get() + " "
                + new TreeMap<>(client.getEntityConfigs("topics", topic.topic())));
            Map<TopicPartition, ?> assignment = new TreeMap<TopicPartition, Object>((a, b) -> a.partition() - b.partition());
            assignment.putAll((Map) CollectionConverters.asJava(topic.assignment()));
            for (TopicPartition tp : assignment.keySet()) {
                scala.collection.Map<TopicPartition, LeaderIsrAndControllerEpoch> states =
                    client.getTopicPartitionStates(seq(tp));
                LeaderIsrAndControllerEpoch state = states.apply(tp);
                System.out.println(tp + " " + assignment.get(tp) + " leader " + state.leaderAndIsr().leader() + " epoch "
                    + state.leaderAndIsr().leaderEpoch() + " isr " + state.leaderAndIsr().isr() + " version "
                    + state.leaderAndIsr().partitionEpoch() + " controller " + state.controllerEpoch());
            }
        }
        System.out.println("broker-default " + new TreeMap<>(client.getEntityConfigs("brokers", "<default>")));
    }

    private static void write(KafkaZkClient client) {
        scala.Tuple2<Object, Object> elected = client.registerControllerAndIncrementControllerEpoch(9);
        int version = (Integer) elected._2();
        System.out.println(elected._1() + " " + version);
        AdminZkClient admin = new AdminZkClient(client, Option.empty());
        Properties configs = new Properties();
        configs.put("retention.ms", "5");
        Map<Object, scala.collection.Seq<Object>> assignment = new HashMap<>();
        assignment.put(0, seq(9, 8));
        assignment.put(1, seq(8, 9));
        admin.createTopicWithAssignment("theirs", configs, CollectionConverters.asScala(assignment), true, true);
        TopicPartition first = new TopicPartition("theirs", 0);
        client.createTopicPartitionStatesRaw(states(first, elected, 9, 0, 0), version);
        client.setTopicPartitionStatesRaw(states(first, elected, 8, 1, 0), version);
        Properties broker = new Properties();
        broker.put("log.cleaner.threads", "2");
        admin.changeBrokerConfig((Option) Option.empty(), broker);
        admin.deleteTopic("theirs");
        client.setOrCreatePartitionReassignment(CollectionConverters.asScala(Map.of(first, seq(7))), version);
        scala.collection.immutable.Set<TopicPartition> both =
            (scala.collection.immutable.Set) CollectionConverters.asScala(Set.of(first)).toSet();
        client.createPreferredReplicaElection(both);
    }

    private static scala.collection.Map<TopicPartition, LeaderIsrAndControllerEpoch> states(
            TopicPartition tp, scala.Tuple2<Object, Object> elected, int leader, int epoch, int version) {
        LeaderAndIsr state = LeaderAndIsr.apply(leader, epoch,
            (scala.collection.immutable.List) seq(9, 8).toList(), LeaderRecoveryState.RECOVERED, version);
        return CollectionConverters.asScala(
            Map.of(tp, new LeaderIsrAndControllerEpoch(state, (Integer) elected._1())));
    }

    private static <T> scala.collection.immutable.Seq seq(Object... values) {
        List<Object> list = new ArrayList<>(Arrays.asList(values));
        return CollectionConverters.asScala(list).toSeq();
    }
}
