// Has the classes that keep the internal topics of Kafka's Connect workers read records, and prints what they make
// of them; and prints the records that they write. tests/connect/stores and tests/connect/herder compare ours.
//
//     java ConnectStores config    < RECORDS    the ClusterConfigState after each scenario
//     java ConnectStores status    < RECORDS    the statuses after each scenario
//     java ConnectStores written                records that a Java worker writes
//
// A record is a line `KEY VALUE`, the value in base64 or `-` for null; a scenario ends with an empty line. In status
// scenarios, a line `? KEY VALUE` asks whether putSafe would write that status.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.AbstractStatus;
import org.apache.kafka.connect.runtime.ConnectorStatus;
import org.apache.kafka.connect.runtime.RestartRequest;
import org.apache.kafka.connect.runtime.SessionKey;
import org.apache.kafka.connect.runtime.TargetState;
import org.apache.kafka.connect.runtime.TaskStatus;
import org.apache.kafka.connect.runtime.TopicStatus;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.ConfigBackingStore;
import org.apache.kafka.connect.storage.KafkaConfigBackingStore;
import org.apache.kafka.connect.storage.KafkaStatusBackingStore;
import org.apache.kafka.connect.util.Callback;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.connect.util.KafkaBasedLog;

public class ConnectStores {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOPIC = "topic";

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "config":
                scenarios(ConnectStores::config);
                break;
            case "status":
                scenarios(ConnectStores::status);
                break;
            default:
                written();
        }
    }

    private interface Scenario {
        Object run(List<String[]> records) throws Exception;
    }

    private static void scenarios(Scenario scenario) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String[]> records = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (!line.isEmpty()) {
                records.add(line.split(" "));
                continue;
            }
            System.out.println(JSON.writeValueAsString(scenario.run(records)));
            records.clear();
        }
    }

    private static JsonConverter converter() {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), false);
        return converter;
    }

    private static ConsumerRecord<String, byte[]> record(long offset, String key, String value) {
        return new ConsumerRecord<>(TOPIC, 0, offset, key, value.equals("-") ? null : Base64.getDecoder().decode(value));
    }

    // --- configs ---

    private static KafkaConfigBackingStore configStore() throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (String name : List.of("config", "offset", "status")) {
            settings.put(name + ".storage.topic", TOPIC);
        }
        settings.put("bootstrap.servers", "localhost:1");
        settings.put("group.id", "group");
        settings.put("key.converter", JsonConverter.class.getName());
        settings.put("value.converter", JsonConverter.class.getName());
        DistributedConfig config = new DistributedConfig(settings);
        Field cluster = WorkerConfig.class.getDeclaredField("kafkaClusterId"); // or it would ask a broker
        cluster.setAccessible(true);
        cluster.set(config, "cluster");
        return new KafkaConfigBackingStore(converter(), config, null, () -> null, "client");
    }

    @SuppressWarnings("unchecked")
    private static Object config(List<String[]> records) throws Exception {
        KafkaConfigBackingStore store = configStore();
        List<String> restarts = new ArrayList<>();
        Map<String, String> levels = new TreeMap<>();
        store.setUpdateListener(new Listener(restarts, levels));
        Field started = KafkaConfigBackingStore.class.getDeclaredField("started");
        started.setAccessible(true);
        started.set(store, true);
        Callback<ConsumerRecord<String, byte[]>> callback =
            (Callback<ConsumerRecord<String, byte[]>>) field(field(store, "configLog"), "consumedCallback");
        long offset = 0;
        for (String[] record : records) {
            try {
                callback.onCompletion(null, record(offset++, record[0], record[1]));
            } catch (RuntimeException e) {
                // The work thread of a Java worker ends here.
            }
        }
        return state(store.snapshot(), restarts, levels);
    }

    private static Object field(Object object, String name) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    private static Map<String, Object> state(
        ClusterConfigState state, List<String> restarts, Map<String, String> levels) {
        Map<String, Object> connectors = new TreeMap<>();
        for (String name : state.connectors()) {
            Map<String, Object> connector = new TreeMap<>();
            connector.put("config", state.rawConnectorConfig(name));
            connector.put("target", state.targetState(name));
            List<Map<String, String>> tasks = new ArrayList<>();
            for (ConnectorTaskId task : state.tasks(name)) {
                tasks.add(state.rawTaskConfig(task));
            }
            connector.put("tasks", tasks);
            connector.put("count", state.taskCount(name));
            connector.put("fenced", state.taskCountRecord(name));
            connector.put("generation", state.taskConfigGeneration(name));
            connector.put("pending", state.pendingFencing(name));
            connectors.put(name, connector);
        }
        SessionKey key = state.sessionKey();
        Map<String, Object> all = new TreeMap<>();
        all.put("offset", state.offset());
        all.put("connectors", connectors);
        all.put("inconsistent", new TreeSet<>(state.inconsistentConnectors()));
        all.put("key", key == null ? null : List.of(
            Base64.getEncoder().encodeToString(key.key().getEncoded()), key.key().getAlgorithm(),
            key.creationTimestamp()));
        all.put("restarts", restarts);
        all.put("levels", levels);
        return all;
    }

    private record Listener(List<String> restarts, Map<String, String> levels)
        implements ConfigBackingStore.UpdateListener {
        @Override
        public void onConnectorConfigRemove(String connector) { }

        @Override
        public void onConnectorConfigUpdate(String connector) { }

        @Override
        public void onTaskConfigUpdate(java.util.Collection<ConnectorTaskId> tasks) { }

        @Override
        public void onConnectorTargetStateChange(String connector) { }

        @Override
        public void onSessionKeyUpdate(SessionKey key) { }

        @Override
        public void onRestartRequest(RestartRequest request) {
            restarts.add(request.connectorName() + " " + request.onlyFailed() + " " + request.includeTasks());
        }

        @Override
        public void onLoggingLevelUpdate(String namespace, String level) {
            levels.put(namespace, level);
        }
    }

    // --- statuses ---

    /** A log that keeps what is sent to it. */
    private static class Sent extends KafkaBasedLog<String, byte[]> {
        private final List<String> lines = new ArrayList<>();

        Sent() {
            super(TOPIC, Map.of(), Map.of(), () -> null, (error, record) -> { }, Time.SYSTEM, admin -> { });
        }

        private void add(String key, byte[] value) {
            lines.add(key + " " + (value == null ? "-" : Base64.getEncoder().encodeToString(value)));
        }

        @Override
        public void send(String key, byte[] value, org.apache.kafka.clients.producer.Callback callback) {
            add(key, value);
        }

        @Override
        public Future<RecordMetadata> sendWithReceipt(String key, byte[] value) {
            add(key, value);
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public Future<Void> readToEnd() {
            return CompletableFuture.completedFuture(null);
        }
    }

    private static KafkaStatusBackingStore statusStore(Sent log) throws Exception {
        Constructor<KafkaStatusBackingStore> made = KafkaStatusBackingStore.class.getDeclaredConstructor(
            Time.class, org.apache.kafka.connect.storage.Converter.class, String.class, Supplier.class,
            KafkaBasedLog.class);
        made.setAccessible(true);
        return made.newInstance(Time.SYSTEM, converter(), TOPIC, (Supplier<?>) () -> null, log);
    }

    private static Object status(List<String[]> records) throws Exception {
        Sent log = new Sent();
        KafkaStatusBackingStore store = statusStore(log);
        Method read = KafkaStatusBackingStore.class.getDeclaredMethod("read", ConsumerRecord.class);
        read.setAccessible(true);
        List<Boolean> safe = new ArrayList<>();
        TreeSet<String> names = new TreeSet<>();
        long offset = 0;
        for (String[] record : records) {
            if (!record[0].equals("?")) {
                read.invoke(store, record(offset++, record[0], record[1]));
                continue;
            }
            int before = log.lines.size();
            putSafe(store, record[1], JSON.readValue(Base64.getDecoder().decode(record[2]), Map.class));
            safe.add(log.lines.size() > before);
        }
        Map<String, Object> all = new TreeMap<>();
        names.addAll(store.connectors());
        names.addAll(List.of("a", "b"));
        Map<String, Object> statuses = new TreeMap<>();
        for (String name : names) {
            if (store.get(name) != null) {
                statuses.put(name, shown(store.get(name)));
            }
            for (TaskStatus each : store.getAll(name)) {
                statuses.put(name + "-" + each.id().task(), shown(each));
            }
            for (TopicStatus each : store.getAllTopics(name)) {
                statuses.put(name + ":" + each.topic(), List.of(each.task(), each.discoverTimestamp()));
            }
        }
        all.put("statuses", statuses);
        all.put("safe", safe);
        return all;
    }

    private static Object shown(AbstractStatus<?> status) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("state", status.state().name());
        shown.put("worker_id", status.workerId());
        shown.put("generation", status.generation());
        shown.put("trace", status.trace());
        shown.put("version", status.version());
        return shown;
    }

    private static void putSafe(KafkaStatusBackingStore store, String key, Map<?, ?> value) {
        AbstractStatus.State state = AbstractStatus.State.valueOf((String) value.get("state"));
        String worker = (String) value.get("worker_id");
        int generation = (Integer) value.get("generation");
        if (key.startsWith("status-connector-")) {
            String name = key.substring("status-connector-".length());
            store.putSafe(new ConnectorStatus(name, state, null, worker, generation, null));
        } else {
            String task = key.substring("status-task-".length());
            int dash = task.lastIndexOf('-');
            ConnectorTaskId id = new ConnectorTaskId(task.substring(0, dash), Integer.parseInt(task.substring(dash + 1)));
            store.putSafe(new TaskStatus(id, state, worker, generation, null, null));
        }
    }

    // --- what a Java worker writes ---

    private static void written() throws Exception {
        Sent log = new Sent();
        KafkaConfigBackingStore configs = configStore();
        Field configLog = KafkaConfigBackingStore.class.getDeclaredField("configLog");
        configLog.setAccessible(true);
        configLog.set(configs, log);
        Map<String, String> config = new LinkedHashMap<>();
        config.put("name", "a");
        config.put("text", "é \u001b\u0000 \n\t \" \\ / \u2028 \ud83d\ude00 \\u001b");
        configs.putConnectorConfig("a", config, TargetState.PAUSED);
        configs.putTaskConfigs("a", List.of(config, Map.of("task", "1")));
        configs.putTargetState("a", TargetState.STARTED);
        configs.putTargetState("a", TargetState.STOPPED);
        configs.putTaskCountRecord("a", 2);
        configs.putSessionKey(new SessionKey(new SecretKeySpec(new byte[] {1, 2, 3}, "HmacSHA256"), 1234567890123L));
        configs.putRestartRequest(new RestartRequest("a", true, false));
        configs.putLoggerLevel("org.apache", "DEBUG");
        configs.removeConnectorConfig("a");

        KafkaStatusBackingStore statuses = statusStore(log);
        statuses.put(new ConnectorStatus("a", AbstractStatus.State.RUNNING, null, "w:8083", 3, "1.0"));
        statuses.put(new ConnectorStatus("a", AbstractStatus.State.FAILED, "trace\n\tat \u001b[1m", "w:8083", 3, null));
        statuses.put(new TaskStatus(new ConnectorTaskId("a", 0), AbstractStatus.State.RUNNING, "w:8083", 3, null, "1.0"));
        statuses.put(new TopicStatus("t", "a", 0, 1234567890123L));
        statuses.deleteTopic("a", "t");
        statuses.put(new TaskStatus(new ConnectorTaskId("a", 0), AbstractStatus.State.DESTROYED, "w:8083", 3));
        statuses.put(new ConnectorStatus("a", AbstractStatus.State.DESTROYED, "w:8083", 3));
        log.lines.forEach(System.out::println);
    }
}
