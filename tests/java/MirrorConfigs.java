// Reads configs of Kafka's MirrorMaker: properties on stdin, the client configs of the flow a->b on stdout.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/MirrorConfigs.java
//
// Each line is a file of properties, `KEY=VALUE` separated by tabs. The answer has a word for each client of the flow
// and key that is set there, `SIDE.ROLE.KEY=VALUE`, sorted and separated by tabs; then `topics.exclude=VALUE` and so on
// for the keys of the connector.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.connect.mirror.MirrorConnectorConfig;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.SourceAndTarget;

public class MirrorConfigs {
    private static final String[][] CLIENTS = {
        {"source.consumer", "sourceConsumerConfig"}, {"source.producer", "sourceProducerConfig"},
        {"source.admin", "sourceAdminConfig"}, {"target.consumer", "targetConsumerConfig"},
        {"target.producer", "targetProducerConfig"}, {"target.admin", "targetAdminConfig"}};
    private static final String[] KEYS = {
        "bootstrap.servers", "security.protocol", "ssl.truststore.password", "auto.offset.reset",
        "request.timeout.ms", "linger.ms"};
    private static final String[] OF_CONNECTOR = {
        "topics", "topics.exclude", "replication.policy.separator", "replication.factor", "tasks.max",
        "refresh.topics.interval.seconds", "offset-syncs.topic.location"};

    public static void main(String[] arguments) throws Exception {
        MirrorMakerConfig maker = new MirrorMakerConfig(
            Map.of("clusters", "a,b", "plugin.discovery", "service_load"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        List<String> answers = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, String> properties = new HashMap<>();
            for (String word : line.split("\t")) {
                properties.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
            }
            answers.add(String.join("\t", answer(maker, properties)));
        }
        System.out.println(String.join("\n", answers));
    }

    private static TreeSet<String> answer(MirrorMakerConfig maker, Map<String, String> properties) throws Exception {
        // The constructor looks for plugins, which takes a second: one is enough for all files.
        Field raw = MirrorMakerConfig.class.getDeclaredField("rawProperties");
        raw.setAccessible(true);
        raw.set(maker, properties);
        Map<String, String> connector = maker.connectorBaseConfig(new SourceAndTarget("a", "b"), MirrorSourceConnector.class);
        MirrorSourceConfig config = new MirrorSourceConfig(connector);
        TreeSet<String> words = new TreeSet<>();
        for (String[] client : CLIENTS) {
            Method method = MirrorConnectorConfig.class.getDeclaredMethod(client[1], String.class);
            method.setAccessible(true);
            Map<?, ?> values = (Map<?, ?>) method.invoke(config, "x");
            for (String key : KEYS) {
                if (values.get(key) != null) {
                    Object value = values.get(key);
                    String text = value instanceof Password ? ((Password) value).value() : value.toString();
                    words.add(client[0] + "." + key + "=" + text);
                }
            }
        }
        for (String key : OF_CONNECTOR) {
            if (connector.containsKey(key)) {
                words.add(key + "=" + connector.get(key));
            }
        }
        return words;
    }
}
