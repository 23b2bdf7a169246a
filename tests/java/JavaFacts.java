// What tests/millstream/kafka_tools/test_java.py compares with: the texts of Kafka's errors, versions of its
// APIs, numbers.

import java.nio.charset.StandardCharsets;
import java.io.PrintStream;
import java.util.List;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

public class JavaFacts {
    private static final List<String> DOUBLES = List.of(
        "0.0", "1.0", "12.5", "1024.0", "9999999.0", "1.0E7", "1.23456789E8", "0.001", "1.0E-4", "1.5E300", "-2.5E9");

    public static void main(String[] arguments) {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        out.println("== errors");
        for (Errors error : Errors.values())
            if (error.exception() != null)
                out.println(String.join("\t", error.name(),
                    error.exception().getClass().getName().substring("org.apache.kafka.common.".length()),
                    error.message()));
        out.println("== apis");
        for (ApiKeys api : ApiKeys.values())
            if (api.hasValidVersion())
                out.println(String.join("\t", String.valueOf(api.id), api.name, String.valueOf(api.oldestVersion()),
                    String.valueOf(api.latestVersion()), String.valueOf(ApiKeys.clientApis().contains(api))));
        out.println("== doubles");
        DOUBLES.forEach(text -> out.println(text + "\t" + Double.valueOf(text)));
    }
}
