import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.config.provider.*;

/** What ConfigTransformer makes of config values, one a line, in the folder of its argument (which is D in the lines). */
public class ConfigVariables {
    static <P extends ConfigProvider> P configured(P provider, Map<String, String> config) {
        provider.configure(config);
        return provider;
    }

    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0];
        Map<String, ConfigProvider> providers = new HashMap<>();
        providers.put("file", configured(new FileConfigProvider(), Map.of()));
        providers.put("dir", configured(new DirectoryConfigProvider(), Map.of()));
        providers.put("env", configured(new EnvVarConfigProvider(), Map.of()));
        Map<String, String> below = Map.of("allowed.paths", folder + "/sub");
        providers.put("file-below", configured(new FileConfigProvider(), below));
        providers.put("dir-below", configured(new DirectoryConfigProvider(), below));
        providers.put("env-some", configured(new EnvVarConfigProvider(), Map.of("allowlist.pattern", "HO")));
        providers.put("env-home", configured(new EnvVarConfigProvider(), Map.of("allowlist.pattern", "HO.E")));
        ConfigTransformer transformer = new ConfigTransformer(providers);
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null;) {
            try {
                Map<String, String> config = Map.of("key", line.replace("D", folder));
                out.println(transformer.transform(config).data().get("key").replace(folder, "D").replace("\n", "|"));
            } catch (ConfigException e) {
                out.println("ConfigException");
            }
        }
    }
}
