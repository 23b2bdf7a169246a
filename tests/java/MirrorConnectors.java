// Asks Kafka's three MirrorMaker connectors: their settings, the errors of configs, and their tasks' configs.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/MirrorConnectors.java
//
// Each line on stdin is a question, its words separated by tabs; each line on stdout is an answer, likewise.
// CONNECTOR is `Source`, `Checkpoint` or `Heartbeat`.
//
//     settings CONNECTOR                     KEY TYPE DEFAULT IMPORTANCE, for each setting; no default is `required`
//     validate CONNECTOR KEY=VALUE ...       KEY=MESSAGE, for each error
//     exactly-once KEY=VALUE ...             SUPPORTED or UNSUPPORTED
//     partitions MAX TOPIC-PARTITION ...     the partitions of each task, separated by commas
//     groups MAX GROUP ...                   the groups of each task, separated by commas
//     clients KEY=VALUE ...                  SIDE.ROLE.KEY=VALUE, for each key of CLIENT_KEYS that a client has
//     checkpoints WORD ...                   a group's checkpoints, UPSTREAM:DOWNSTREAM or `none`, for each word
//                                            ?UPSTREAM (an offset of the group); other words are UPSTREAM:DOWNSTREAM
//                                            (a sync), and `restart` (a new store of syncs, the same checkpoints)
//     commits CURRENT:DOWNSTREAM ...         the offset to commit in the target, or `none`, for each partition with
//                                            an offset there (`none`, `null`: no offset) and a checkpoint

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.CheckpointStore;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.MirrorCheckpointConfig;
import org.apache.kafka.connect.mirror.MirrorCheckpointConnector;
import org.apache.kafka.connect.mirror.MirrorCheckpointTask;
import org.apache.kafka.connect.mirror.MirrorConnectorConfig;
import org.apache.kafka.connect.mirror.MirrorHeartbeatConnector;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.OffsetSyncStore;
import org.apache.kafka.connect.mirror.ReplicationPolicy;
import org.apache.kafka.connect.source.SourceConnector;

public class MirrorConnectors {
    private static final Map<String, String> BASE = Map.of(
        "name", "m", "connector.class", "Mirror", "source.cluster.alias", "a", "target.cluster.alias", "b",
        "source.cluster.bootstrap.servers", "localhost:1", "target.cluster.bootstrap.servers", "localhost:2");

    private static final List<String> CLIENT_KEYS = List.of("security.protocol", "request.timeout.ms");
    private static final TopicPartition TP = new TopicPartition("t", 0);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        List<String> answers = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = Arrays.asList(line.split("\t"));
            answers.add(String.join("\t", answer(words.get(0), words.subList(1, words.size()))));
        }
        System.out.println(String.join("\n", answers));
    }

    private static List<String> answer(String question, List<String> words) throws Exception {
        switch (question) {
            case "settings":
                return settings(connector(words.get(0)).config());
            case "validate":
                return errors(connector(words.get(0)), properties(words.subList(1, words.size())));
            case "exactly-once":
                return List.of(new MirrorSourceConnector().exactlyOnceSupport(properties(words)).toString());
            case "clients":
                return clients(new MirrorSourceConfig(properties(words)));
            case "checkpoints":
                return checkpoints(words);
            case "commits":
                return commits(words);
            default:
                return tasks(question, Integer.parseInt(words.get(0)), words.subList(1, words.size()));
        }
    }

    private static SourceConnector connector(String kind) {
        switch (kind) {
            case "Source": return new MirrorSourceConnector();
            case "Checkpoint": return new MirrorCheckpointConnector();
            default: return new MirrorHeartbeatConnector();
        }
    }

    private static Map<String, String> properties(List<String> words) {
        Map<String, String> properties = new HashMap<>(BASE);
        for (String word : words) {
            properties.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        }
        return properties;
    }

    private static List<String> settings(ConfigDef config) {
        List<String> settings = new ArrayList<>();
        for (ConfigDef.ConfigKey key : config.configKeys().values()) {
            String value = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE
                ? "required" : ConfigDef.convertToString(key.defaultValue, key.type);
            settings.add(String.join(" ", key.name, key.type.toString(), key.importance.toString(), "" + value));
        }
        settings.sort(null);
        return settings;
    }

    private static List<String> errors(SourceConnector connector, Map<String, String> properties) {
        List<String> errors = new ArrayList<>();
        for (ConfigValue value : connector.validate(properties).configValues()) {
            for (String message : value.errorMessages()) {
                errors.add(value.name() + "=" + message.replace('\n', ' '));
            }
        }
        errors.sort(null);
        return errors;
    }

    private static List<String> tasks(String question, int max, List<String> words) throws Exception {
        boolean ofGroups = question.equals("groups");
        SourceConnector connector = ofGroups ? withGroups(words) : withPartitions(words);
        List<String> shares = new ArrayList<>();
        for (Map<String, String> config : connector.taskConfigs(max)) {
            shares.add(config.get(ofGroups ? "task.assigned.groups" : "task.assigned.partitions"));
        }
        return shares;
    }

    private static SourceConnector withPartitions(List<String> words) throws Exception {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String word : words) {
            int dash = word.lastIndexOf('-');
            partitions.add(new TopicPartition(word.substring(0, dash), Integer.parseInt(word.substring(dash + 1))));
        }
        Constructor<MirrorSourceConnector> make =
            MirrorSourceConnector.class.getDeclaredConstructor(List.class, MirrorSourceConfig.class);
        make.setAccessible(true);
        return make.newInstance(partitions, new MirrorSourceConfig(BASE));
    }

    private static SourceConnector withGroups(List<String> words) throws Exception {
        Constructor<MirrorCheckpointConnector> make =
            MirrorCheckpointConnector.class.getDeclaredConstructor(Set.class, MirrorCheckpointConfig.class);
        make.setAccessible(true);
        return make.newInstance(new LinkedHashSet<>(words), new MirrorCheckpointConfig(BASE));
    }

    private static List<String> clients(MirrorSourceConfig config) throws Exception {
        TreeSet<String> words = new TreeSet<>();
        for (String side : List.of("source", "target")) {
            for (String role : List.of("consumer", "producer", "admin")) {
                String name = side + Character.toUpperCase(role.charAt(0)) + role.substring(1) + "Config";
                Method method = MirrorConnectorConfig.class.getDeclaredMethod(name, String.class);
                method.setAccessible(true);
                Map<?, ?> values = (Map<?, ?>) method.invoke(config, "x");
                for (String key : CLIENT_KEYS) {
                    if (values.get(key) != null) {
                        words.add(side + "." + role + "." + key + "=" + values.get(key));
                    }
                }
            }
        }
        return new ArrayList<>(words);
    }

    private static List<String> checkpoints(List<String> words) throws Exception {
        Map<String, Map<TopicPartition, Checkpoint>> written = new HashMap<>();
        written.put("g", new HashMap<>());
        OffsetSyncStore store = store();
        List<String> answers = new ArrayList<>();
        for (String word : words) {
            if (word.equals("restart")) {
                store = store();
            } else if (word.startsWith("?")) {
                MirrorCheckpointTask task = task(store, Map.of(), written);
                Method method =
                    MirrorCheckpointTask.class.getDeclaredMethod("checkpointsForGroup", Map.class, String.class);
                method.setAccessible(true);
                OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(word.substring(1)));
                Map<?, ?> found = (Map<?, ?>) method.invoke(task, Map.of(TP, offset), "g");
                String answer = "none";
                for (Object each : found.values()) {
                    Checkpoint checkpoint = (Checkpoint) each;
                    written.get("g").put(checkpoint.topicPartition(), checkpoint);
                    answer = checkpoint.upstreamOffset() + ":" + checkpoint.downstreamOffset();
                }
                answers.add(answer);
            } else {
                String[] pair = word.split(":");
                add(store, new OffsetSync(TP, Long.parseLong(pair[0]), Long.parseLong(pair[1])));
            }
        }
        return answers;
    }

    private static List<String> commits(List<String> words) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> current = new HashMap<>();
        Map<TopicPartition, Checkpoint> written = new HashMap<>();
        for (int i = 0; i < words.size(); i++) {
            String[] pair = words.get(i).split(":");
            TopicPartition partition = new TopicPartition("t", i);
            if (!pair[0].equals("none")) {
                current.put(partition, pair[0].equals("null") ? null : new OffsetAndMetadata(Long.parseLong(pair[0])));
            }
            written.put(partition, new Checkpoint("g", partition, 1000, Long.parseLong(pair[1]), ""));
        }
        MirrorCheckpointTask task = task(null, new HashMap<>(Map.of("g", current)), Map.of("g", written));
        Method method = MirrorCheckpointTask.class.getDeclaredMethod("syncGroupOffset");
        method.setAccessible(true);
        Map<?, ?> groups = (Map<?, ?>) method.invoke(task);
        Map<?, ?> offsets = groups.containsKey("g") ? (Map<?, ?>) groups.get("g") : Map.of();
        List<String> answers = new ArrayList<>();
        for (int i = 0; i < words.size(); i++) {
            Object offset = offsets.get(new TopicPartition("t", i));
            answers.add(offset == null ? "none" : "" + ((OffsetAndMetadata) offset).offset());
        }
        return answers;
    }

    private static MirrorCheckpointTask task(
            OffsetSyncStore store, Map<?, ?> current, Map<?, ?> written) throws Exception {
        Constructor<CheckpointStore> makeStore = CheckpointStore.class.getDeclaredConstructor(Map.class);
        makeStore.setAccessible(true);
        Constructor<MirrorCheckpointTask> make = MirrorCheckpointTask.class.getDeclaredConstructor(
            String.class, String.class, ReplicationPolicy.class, OffsetSyncStore.class, Set.class, Map.class,
            CheckpointStore.class);
        make.setAccessible(true);
        return make.newInstance(
            "a", "b", new DefaultReplicationPolicy(), store, Set.of(), current, makeStore.newInstance(written));
    }

    private static OffsetSyncStore store() throws Exception {
        Constructor<OffsetSyncStore> make = OffsetSyncStore.class.getDeclaredConstructor();
        make.setAccessible(true);
        OffsetSyncStore store = make.newInstance();
        for (String name : List.of("initializationMustReadToEnd", "readToEnd")) {
            Field field = OffsetSyncStore.class.getDeclaredField(name);
            field.setAccessible(true);
            field.setBoolean(store, name.equals("readToEnd"));
        }
        return store;
    }

    private static void add(OffsetSyncStore store, OffsetSync sync) throws Exception {
        Method handle = OffsetSyncStore.class.getDeclaredMethod("handleRecord", ConsumerRecord.class);
        handle.setAccessible(true);
        handle.invoke(store, new ConsumerRecord<>("s", 0, 0, part(sync, "recordKey"), part(sync, "recordValue")));
    }

    private static byte[] part(OffsetSync sync, String method) throws Exception {
        Method part = OffsetSync.class.getDeclaredMethod(method);
        part.setAccessible(true);
        return (byte[]) part.invoke(sync);
    }
}
