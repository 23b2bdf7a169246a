import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Rising numbers of each task, a hundred a second; its twin in Python is in test_java_exactly_once.py. */
public class NumbersSource extends SourceConnector {
    private Map<String, String> config;

    @Override
    public String version() {
        return "1";
    }

    @Override
    public void start(Map<String, String> config) {
        this.config = config;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return NumbersTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> configs = new ArrayList<>();
        for (int task = 0; task < most; task++) {
            Map<String, String> each = new HashMap<>(config);
            each.put("id", String.valueOf(task));
            configs.add(each);
        }
        return configs;
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("topic", ConfigDef.Type.STRING, ConfigDef.NO_DEFAULT_VALUE, ConfigDef.Importance.HIGH, "Topic.");
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    /** A task of one source partition. */
    public static class NumbersTask extends SourceTask {
        private String topic;
        private String id;
        private long next;

        @Override
        public String version() {
            return "1";
        }

        @Override
        public void start(Map<String, String> config) {
            topic = config.get("topic");
            id = config.get("id");
            Map<String, Object> offset = context.offsetStorageReader().offset(Map.of("id", id));
            next = offset == null ? 0 : ((Number) offset.get("next")).longValue();
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(10);
            long number = next++;
            return List.of(new SourceRecord(Map.of("id", id), Map.of("next", next), topic, null,
                Schema.STRING_SCHEMA, id, Schema.INT64_SCHEMA, number));
        }

        @Override
        public void stop() {}
    }
}
