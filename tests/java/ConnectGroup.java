import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Kafka Connect's group protocol. Reads a JSON document a line and answers each with one:
 * {"max_delay": ms} makes an assignor; {"now", "last", "generation", "configured": {connector: tasks},
 * "members": {member: [[connector, task]]}} is a round of it; {"assignment": hex}, {"state": hex} are decoded
 * and encoded again, as {"hex"} with {"fields"}; {"make": ...} encodes an assignment and a state from fields.
 */
public class ConnectGroup {
    static long now;
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Time time = (Time) Proxy.newProxyInstance(
            ConnectGroup.class.getClassLoader(),
            new Class<?>[] {Time.class},
            (proxy, method, values) -> {
                if (!method.getName().equals("milliseconds")) throw new UnsupportedOperationException(method.getName());
                return now;
            });
        Method round = IncrementalCooperativeAssignor.class.getDeclaredMethod(
            "performTaskAssignment", ClusterConfigState.class, int.class, int.class, Map.class);
        round.setAccessible(true);
        IncrementalCooperativeAssignor assignor = null;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode in = JSON.readTree(line);
            Map<String, Object> out = new TreeMap<>();
            if (in.has("max_delay")) {
                assignor = new IncrementalCooperativeAssignor(new LogContext(), time, in.get("max_delay").asInt());
            } else if (in.has("assignment")) {
                ExtendedAssignment assignment =
                    IncrementalCooperativeConnectProtocol.deserializeAssignment(buffer(in.get("assignment")));
                out.put("fields", assignment.toString());
                out.put("hex", hex(IncrementalCooperativeConnectProtocol.serializeAssignment(assignment, assignment.version() == 2)));
            } else if (in.has("state")) {
                ExtendedWorkerState state =
                    IncrementalCooperativeConnectProtocol.deserializeMetadata(buffer(in.get("state")));
                out.put("fields", state.toString());
                out.put("hex", hex(IncrementalCooperativeConnectProtocol.serializeMetadata(state, in.get("sessioned").asBoolean())));
            } else if (in.has("eager_state")) {
                ConnectProtocol.WorkerState state = ConnectProtocol.deserializeMetadata(buffer(in.get("eager_state")));
                out.put("hex", hex(ConnectProtocol.serializeMetadata(state)));
            } else if (in.has("eager_assignment")) {
                ConnectProtocol.Assignment assignment =
                    ConnectProtocol.deserializeAssignment(buffer(in.get("eager_assignment")));
                out.put("hex", hex(ConnectProtocol.serializeAssignment(assignment)));
            } else {
                now = in.get("now").asLong();
                Object division = round.invoke(
                    assignor, configs(in.get("configured")), in.get("last").asInt(), in.get("generation").asInt(),
                    members(in.get("members")));
                out.put("assigned", units(division, "newlyAssigned"));
                out.put("revoked", units(division, "newlyRevoked"));
                var delay = IncrementalCooperativeAssignor.class.getDeclaredField("delay");
                delay.setAccessible(true);
                out.put("delay", delay.getInt(assignor));
            }
            System.out.println(JSON.writeValueAsString(out));
        }
    }

    static ClusterConfigState configs(JsonNode configured) {
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Map<String, String>> connectors = new HashMap<>();
        Map<ConnectorTaskId, Map<String, String>> tasks = new HashMap<>();
        configured.properties().forEach(each -> {
            counts.put(each.getKey(), each.getValue().asInt());
            connectors.put(each.getKey(), Map.of());
            for (int n = 0; n < each.getValue().asInt(); n++) tasks.put(new ConnectorTaskId(each.getKey(), n), Map.of());
        });
        return new ClusterConfigState(
            0, null, counts, connectors, Map.of(), tasks, Map.of(), Map.of(), Map.of(), Set.of(), Set.of());
    }

    static Map<String, ConnectorsAndTasks> members(JsonNode members) {
        Map<String, ConnectorsAndTasks> result = new LinkedHashMap<>();
        members.properties().forEach(member -> {
            List<String> connectors = new ArrayList<>();
            List<ConnectorTaskId> tasks = new ArrayList<>();
            for (JsonNode unit : member.getValue()) {
                String connector = unit.get(0).asText();
                int task = unit.get(1).asInt();
                if (task < 0) connectors.add(connector);
                else tasks.add(new ConnectorTaskId(connector, task));
            }
            result.put(member.getKey(), new ConnectorsAndTasks.Builder().with(connectors, tasks).build());
        });
        return result;
    }

    /** Each member's units of a division, sorted; members without any are left out. */
    @SuppressWarnings("unchecked")
    static Map<String, List<List<Object>>> units(Object division, String kind) throws Exception {
        Map<String, List<List<Object>>> result = new TreeMap<>();
        ((Map<String, Collection<String>>) get(division, kind + "Connectors")).forEach((member, names) ->
            names.stream().sorted().forEach(name -> result.computeIfAbsent(member, m -> new ArrayList<>()).add(List.of(name, -1))));
        ((Map<String, Collection<ConnectorTaskId>>) get(division, kind + "Tasks")).forEach((member, tasks) ->
            tasks.stream().sorted().forEach(task ->
                result.computeIfAbsent(member, m -> new ArrayList<>()).add(List.of(task.connector(), task.task()))));
        return result;
    }

    static Object get(Object division, String name) throws Exception {
        Method method = division.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(division);
    }

    static ByteBuffer buffer(JsonNode hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex.asText()));
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
