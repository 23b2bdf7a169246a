// Prints whom Kafka 3's controller elects, and what it makes of reassignments: kafka_rules.txt in
// tests/logd/metadata/controller/golden, to which test_kafkas_rules.py holds ours.
//
//     java -cp "$KAFKA_3_LIBS/*" tests/java/ControllerRules.java
//
// An election a line, of a partition with replicas 2,1,3: the ISR, the brokers alive, those of them that are
// shutting down; behind `->` who is elected when there is no leader, when it may be unclean, as the preferred
// leader, and when leaders that shut down are relieved. `-` is nobody.
//
// A reassignment a line: replicas, those being added, those being removed; the target; and behind `->` what
// the three are then, and the replicas there are again once it is cancelled.

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import kafka.controller.ControllerContext;
import kafka.controller.PartitionLeaderElectionAlgorithms;
import kafka.controller.ReplicaAssignment;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

public class ControllerRules {
    private static final List<Integer> REPLICAS = List.of(2, 1, 3);

    public static void main(String[] arguments) {
        System.out.println("== elections");
        ControllerContext context = new ControllerContext();
        for (int isr = 1; isr < 8; isr++) {
            for (int alive = 0; alive < 8; alive++) {
                for (int leaving = 0; leaving < 8; leaving++) {
                    if ((leaving & ~alive) == 0) {
                        election(of(isr), of(alive), of(leaving), of(alive & ~leaving), context);
                    }
                }
            }
        }
        System.out.println("== reassignments");
        Random random = new Random(455);
        for (int i = 0; i < 40; i++) {
            ReplicaAssignment assignment = ReplicaAssignment.apply(seq(some(random)));
            for (int step = 0; step < 3; step++) {
                List<Integer> target = some(random);
                ReplicaAssignment next = assignment.reassignTo(seq(target));
                System.out.println(state(assignment) + " " + text(target) + " -> " + state(next) + " " + text(list(next.originReplicas())));
                assignment = next;
            }
        }
    }

    private static void election(List<Integer> isr, List<Integer> alive, List<Integer> leaving, List<Integer> staying, ControllerContext context) {
        System.out.println(String.join(" ", text(isr), text(alive), text(leaving), "->",
            name(PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection(seq(REPLICAS), seq(isr), set(staying), false, context)),
            name(PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection(seq(REPLICAS), seq(isr), set(staying), true, context)),
            name(PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection(seq(REPLICAS), seq(isr), set(staying))),
            name(PartitionLeaderElectionAlgorithms.controlledShutdownPartitionLeaderElection(seq(REPLICAS), seq(isr), set(alive), set(leaving)))));
    }

    private static List<Integer> of(int bits) {
        return IntStream.range(0, 3).filter(i -> (bits & 1 << i) != 0).mapToObj(i -> i + 1).collect(Collectors.toList());
    }

    private static List<Integer> some(Random random) {
        List<Integer> brokers = new ArrayList<>(List.of(1, 2, 3, 4, 5));
        Collections.shuffle(brokers, random);
        return brokers.subList(0, 1 + random.nextInt(3));
    }

    private static String state(ReplicaAssignment a) {
        return text(list(a.replicas())) + " " + text(list(a.addingReplicas())) + " " + text(list(a.removingReplicas()));
    }

    private static String name(Option<Object> elected) {
        return elected.isEmpty() ? "-" : elected.get().toString();
    }

    private static String text(List<Integer> numbers) {
        return numbers.isEmpty() ? "-" : numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    private static Seq<Object> seq(List<Integer> numbers) {
        return CollectionConverters.asScala(new ArrayList<Object>(numbers)).toSeq();
    }

    private static scala.collection.immutable.Set<Object> set(List<Integer> numbers) {
        return seq(numbers).toSet();
    }

    private static List<Integer> list(scala.collection.Seq<Object> numbers) {
        return CollectionConverters.asJava(numbers).stream().map(number -> (Integer) number).collect(Collectors.toList());
    }
}
