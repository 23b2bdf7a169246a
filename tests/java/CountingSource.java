import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A source without records, for comparing a worker's REST interface: `topic` is required, `limit` a number. */
public class CountingSource extends SourceConnector {
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
        return CountingTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return List.of(config);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("topic", ConfigDef.Type.STRING, ConfigDef.NO_DEFAULT_VALUE, ConfigDef.Importance.HIGH, "Topic.")
            .define("limit", ConfigDef.Type.INT, 5, ConfigDef.Importance.MEDIUM, "How many.", "Counting", 1,
                ConfigDef.Width.SHORT, "Limit")
            .define("secret", ConfigDef.Type.PASSWORD, null, ConfigDef.Importance.LOW, "A password.");
    }

    @Override
    public boolean alterOffsets(Map<String, String> config, Map<Map<String, ?>, Map<String, ?>> offsets) {
        return true;
    }

    /** The only task, which waits. */
    public static class CountingTask extends SourceTask {
        @Override
        public String version() {
            return "1";
        }

        @Override
        public void start(Map<String, String> config) {}

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(50);
            return null;
        }

        @Override
        public void stop() {}
    }
}
