import java.lang.reflect.Method;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.runtime.standalone.StandaloneConfig;

/** Prints the settings of Kafka Connect's workers: which worker has it, and the key. */
public class ConnectWorkerKeys {
    public static void main(String[] args) throws Exception {
        print("distributed", definition(DistributedConfig.class, "config"));
        print("standalone", definition(StandaloneConfig.class, "CONFIG"));
        print("every", definition(WorkerConfig.class, "baseConfigDef"));
    }

    private static ConfigDef definition(Class<?> type, String name) throws Exception {
        for (var field : type.getDeclaredFields()) {
            if (field.getName().equals(name)) {
                field.setAccessible(true);
                return (ConfigDef) field.get(null);
            }
        }
        for (Method method : type.getDeclaredMethods()) {
            if (method.getName().equals(name)) {
                method.setAccessible(true);
                Object[] arguments = new Object[method.getParameterCount()];
                for (int i = 0; i < arguments.length; i++) {
                    arguments[i] = method.getParameterTypes()[i].getField("SYSTEM").get(null);
                }
                return (ConfigDef) method.invoke(null, arguments);
            }
        }
        throw new IllegalArgumentException(name);
    }

    private static void print(String worker, ConfigDef definition) {
        for (String key : new TreeSet<>(definition.names())) {
            System.out.println(worker + " " + key);
        }
    }
}
