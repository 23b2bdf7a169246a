// Records a client's use by Kafka's quota managers, for tests/logd/broker/quotas/test_kafkas_quotas.py.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/Quotas.java
//
// A line of its input is a command, its fields parted by tabs. `-` is no such entity, `*` the default one.
//     set USER CLIENT VALUE                     set a quota on bytes, requests and mutations
//     PRODUCE USER CLIENT VALUE MS              record bytes, print the throttle time in ms
//     REQUEST USER CLIENT NANOS MS              record request time, print the throttle time in ms
//     CONTROLLER_MUTATION USER CLIENT COUNT MS  record mutations strictly, print `exceeded` or the throttle time
//     quota USER CLIENT                         print the quota that holds, or null

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientRequestQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

public class Quotas {
    private static long now = 0;

    public static void main(String[] arguments) throws Exception {
        Time time = (Time) java.lang.reflect.Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {Time.class}, (proxy, method, args) ->
                switch (method.getName()) {
                    case "milliseconds", "hiResClockMs" -> now;
                    case "nanoseconds" -> now * 1_000_000;
                    default -> throw new UnsupportedOperationException(method.getName());
                });
        Metrics metrics = new Metrics(new MetricConfig(), new java.util.ArrayList<>(), time);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig();
        ClientQuotaManager bytes = new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "");
        ClientRequestQuotaManager requests =
            new ClientRequestQuotaManager(config, metrics, time, "", Optional.empty());
        ControllerMutationQuotaManager mutations =
            new ControllerMutationQuotaManager(config, metrics, time, "", Optional.empty());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            if (f[0].equals("set")) {
                Optional<ConfigEntity> user = f[1].equals("-") ? Optional.empty() : Optional.of(
                    f[1].equals("*") ? ClientQuotaManager.DEFAULT_USER_ENTITY : new ClientQuotaManager.UserEntity(f[1]));
                Optional<ConfigEntity> client = f[2].equals("-") ? Optional.empty() : Optional.of(
                    f[2].equals("*") ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID : new ClientQuotaManager.ClientIdEntity(f[2]));
                for (ClientQuotaManager each : new ClientQuotaManager[] {bytes, requests, mutations})
                    each.updateQuota(user, client, Optional.of(new Quota(Double.parseDouble(f[3]), true)));
                continue;
            }
            Session session = new Session(
                new KafkaPrincipal(KafkaPrincipal.USER_TYPE, f[1]), InetAddress.getLoopbackAddress());
            if (f[0].equals("quota")) {
                Quota quota = bytes.quota(f[1], f[2]);
                out.append(quota == null ? "null" : Double.toString(quota.bound())).append('\n');
                continue;
            }
            now = Long.parseLong(f[4]);
            double value = Double.parseDouble(f[3]);
            out.append(switch (f[0]) {
                case "PRODUCE" -> Integer.toString(bytes.recordAndGetThrottleTimeMs(session, f[2], value, now));
                case "REQUEST" -> Integer.toString(requests.recordAndGetThrottleTimeMs(
                    session, f[2], value * 100 / 1e9, now));
                default -> mutation(mutations.newStrictQuotaFor(session, f[2]), value);
            }).append('\n');
        }
        System.out.print(out);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String mutation(ControllerMutationQuota quota, double permits) {
        try {
            quota.record(permits);
            return Integer.toString(quota.throttleTime());
        } catch (ThrottlingQuotaExceededException e) {
            return "exceeded " + e.throttleTimeMs();
        }
    }
}
