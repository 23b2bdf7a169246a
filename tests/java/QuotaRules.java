// Alters and describes client quotas by Kafka's controller, for tests/logd/metadata/controller/test_client_quotas.py.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/QuotaRules.java
//
// A line of its input is a command, its fields parted by tabs. `~` in place of a name or a value is null.
//     alter TYPE=NAME,... KEY=VALUE,...      print the error, or NONE; what is altered stays for later lines
//     describe STRICT TYPE:MATCH:NAME,...    print the error, or the entities in order, each with its quotas

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.DescribeClientQuotasRequestData;
import org.apache.kafka.common.message.DescribeClientQuotasResponseData;
import org.apache.kafka.common.metadata.ClientQuotaRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.controller.ClientQuotaControlManager;
import org.apache.kafka.image.ClientQuotasDelta;
import org.apache.kafka.image.ClientQuotasImage;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class QuotaRules {
    private static ClientQuotasImage image = ClientQuotasImage.EMPTY;

    public static void main(String[] arguments) throws Exception {
        Constructor<?> made = Class.forName(ClientQuotaControlManager.class.getName() + "$Builder").getDeclaredConstructor();
        made.setAccessible(true);
        Object builder = made.newInstance();
        Method build = builder.getClass().getDeclaredMethod("build");
        build.setAccessible(true);
        ClientQuotaControlManager manager = (ClientQuotaControlManager) build.invoke(builder);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            out.append(f[0].equals("alter") ? altered(manager, f[1], f[2]) : described(f[1], f[2])).append('\n');
        }
        System.out.print(out);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String altered(ClientQuotaControlManager manager, String names, String ops) throws Exception {
        Map<String, String> entries = new LinkedHashMap<>();
        for (String[] pair : pairs(names, "="))
            entries.put(pair[0], nullable(pair[1]));
        Collection<ClientQuotaAlteration.Op> changes = new ArrayList<>();
        for (String[] pair : pairs(ops, "="))
            changes.add(new ClientQuotaAlteration.Op(pair[0], pair[1].equals("~") ? null : Double.valueOf(pair[1])));
        Method alter = ClientQuotaControlManager.class.getDeclaredMethod("alterClientQuotas", Collection.class);
        alter.setAccessible(true);
        Object result = alter.invoke(
            manager, List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entries), changes)));
        ClientQuotasDelta delta = new ClientQuotasDelta(image);
        for (Object each : (List<?>) part(result, "records")) {
            ClientQuotaRecord record = (ClientQuotaRecord) ((ApiMessageAndVersion) each).message();
            manager.replay(record);
            delta.replay(record);
        }
        image = delta.apply();
        ApiError error = (ApiError) ((Map<?, ?>) part(result, "response")).values().iterator().next();
        return error.isSuccess() ? "NONE" : error.error() + " " + error.message();
    }

    private static Object part(Object result, String name) throws Exception {
        Method method = result.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(result);
    }

    private static String described(String strict, String components) {
        DescribeClientQuotasRequestData request = new DescribeClientQuotasRequestData().setStrict(strict.equals("True"));
        for (String[] each : pairs(components, ":"))
            request.components().add(new DescribeClientQuotasRequestData.ComponentData()
                .setEntityType(each[0]).setMatchType(Byte.parseByte(each[1])).setMatch(nullable(each[2])));
        try {
            return image.describe(request).entries().stream().map(QuotaRules::text).sorted().collect(Collectors.joining("; "));
        } catch (ApiException e) {
            return Errors.forException(e) + " " + e.getMessage();
        }
    }

    private static String text(DescribeClientQuotasResponseData.EntryData entry) {
        return entry.entity().stream().map(e -> e.entityType() + "=" + (e.entityName() == null ? "~" : e.entityName()))
            .sorted().collect(Collectors.joining(",")) + " "
            + entry.values().stream().map(v -> v.key() + "=" + v.value()).sorted().collect(Collectors.joining(","));
    }

    private static List<String[]> pairs(String text, String between) {
        List<String[]> all = new ArrayList<>();
        for (String each : text.isEmpty() ? new String[0] : text.split(",", -1))
            all.add(each.split(between, -1));
        return all;
    }

    private static String nullable(String text) {
        return text.equals("~") ? null : text;
    }
}
