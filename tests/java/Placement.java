// Prints where Kafka 3's AdminUtils places replicas: tests/logd/metadata/controller/golden/placement.txt, to which
// tests/logd/metadata/controller/test_placement.py holds ours.
//
//     java -cp "$KAFKA_3_LIBS/*" tests/java/Placement.java > tests/logd/metadata/controller/golden/placement.txt
//
// A line a case: brokers with their racks (`-` is none), partitions, replication factor, the start index and
// the shift that AdminUtils drew, the first partition, and the replicas of each partition.

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;

public class Placement {
    private static final int[] IDS = {0, 1, 2, 3, 5, 8, 10, 11, 20};
    private static final String[] RACKS = {"---------", "aaabbbccc", "abcabcabc", "cbacbacba", "aabbbbbbb", "aaaaaaaaa", "zyxwvutsr"};

    public static void main(String[] arguments) throws Exception {
        Field field = AdminUtils.class.getDeclaredField("RAND");
        field.setAccessible(true);
        Random theirs = (Random) field.get(null);
        Random cases = new Random(11);
        for (String racks : RACKS) {
            for (int count : new int[] {1, 2, 3, 4, 6, 9}) {
                for (int factor = 1; factor <= Math.min(count, 5); factor++) {
                    long seed = cases.nextInt(1000);
                    int first = cases.nextInt(3) * cases.nextInt(12);
                    print(theirs, seed, racks, count, factor, first, 2 * count + 3);
                }
            }
        }
    }

    private static void print(Random theirs, long seed, String racks, int count, int factor, int first, int partitions) {
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String rack = racks.substring(i, i + 1);
            brokers.add(new BrokerMetadata(IDS[i], rack.equals("-") ? Optional.empty() : Optional.of(rack)));
        }
        theirs.setSeed(seed);
        Random same = new Random(seed);
        int index = same.nextInt(count);
        int shift = same.nextInt(count);
        Map<Integer, List<Integer>> placed =
            new TreeMap<>(AdminUtils.assignReplicasToBrokers(brokers, partitions, factor, -1, first));
        System.out.println(String.join(" ",
            brokers.stream().map(b -> b.id + ":" + b.rack.orElse("-")).collect(Collectors.joining(",")),
            "" + partitions, "" + factor, "" + index, "" + shift, "" + first,
            placed.values().stream().map(Placement::joined).collect(Collectors.joining(";"))));
    }

    private static String joined(List<Integer> replicas) {
        return replicas.stream().map(String::valueOf).collect(Collectors.joining(","));
    }
}
