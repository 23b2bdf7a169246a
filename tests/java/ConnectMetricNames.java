import org.apache.kafka.connect.runtime.ConnectMetricsRegistry;

/** Prints the metrics of Kafka Connect: type, name and tags. */
public class ConnectMetricNames {
    public static void main(String[] args) {
        for (var template : new ConnectMetricsRegistry().getAllTemplates()) {
            System.out.println(
                template.group() + " " + template.name() + " " + String.join(",", template.tags()));
        }
    }
}
