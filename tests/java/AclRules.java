// Answers questions of authorization by Kafka's StandardAuthorizer, for tests/logd/security/test_kafkas_authorizer.py.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/AclRules.java
//
// A line of its input is a command, its fields parted by tabs. Enumerations are written in Kafka's words.
//     new SUPER_USERS ALLOW_EVERYONE                                          begin with another authorizer
//     add TYPE PATTERN NAME PRINCIPAL HOST OPERATION PERMISSION               add an ACL
//     ask PRINCIPAL HOST OPERATION TYPE NAME                                  print true if it is allowed
//     some PRINCIPAL HOST OPERATION TYPE                                      print true if it is for some name
//     filter TYPE PATTERN NAME PRINCIPAL HOST OPERATION PERMISSION            print the number of matching ACLs
// In a filter `-` stands for any name, principal or host.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class AclRules {
    private static final Metrics METRICS = new Metrics();
    private static StandardAuthorizer authorizer;
    private static int round = 0;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> answers = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            switch (f[0]) {
                case "new" -> begin(f[1], f[2]);
                case "add" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.valueOf(f[1]), f[3], PatternType.valueOf(f[2]), f[4], f[5],
                    AclOperation.valueOf(f[6]), AclPermissionType.valueOf(f[7])));
                case "ask" -> answers.add(ask(f));
                case "some" -> answers.add(allowed(authorizer.authorizeByResourceType(
                    new Peer(f[1], f[2]), AclOperation.valueOf(f[3]), ResourceType.valueOf(f[4]))));
                default -> answers.add(matching(f));
            }
        }
        System.out.println(String.join("\n", answers));
    }

    private static void begin(String superUsers, String allowEveryone) {
        authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of("super.users", superUsers, "allow.everyone.if.no.acl.found", allowEveryone));
        authorizer.withPluginMetrics(new PluginMetricsImpl(METRICS, Map.of("round", String.valueOf(round++))));
        authorizer.completeInitialLoad();
    }

    private static String ask(String[] f) {
        ResourcePattern resource = new ResourcePattern(ResourceType.valueOf(f[4]), f[5], PatternType.LITERAL);
        Action action = new Action(AclOperation.valueOf(f[3]), resource, 1, true, true);
        return allowed(authorizer.authorize(new Peer(f[1], f[2]), List.of(action)).get(0));
    }

    private static String allowed(AuthorizationResult result) {
        return String.valueOf(result == AuthorizationResult.ALLOWED);
    }

    private static String matching(String[] f) {
        AclBindingFilter filter = new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.valueOf(f[1]), any(f[3]), PatternType.valueOf(f[2])),
            new AccessControlEntryFilter(
                any(f[4]), any(f[5]), AclOperation.valueOf(f[6]), AclPermissionType.valueOf(f[7])));
        int count = 0;
        for (AclBinding ignored : authorizer.acls(filter)) {
            count++;
        }
        return String.valueOf(count);
    }

    private static String any(String text) {
        return text.equals("-") ? null : text;
    }

    private record Peer(String name, String host) implements AuthorizableRequestContext {
        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public KafkaPrincipal principal() {
            String[] parts = name.split(":", 2);
            return new KafkaPrincipal(parts[0], parts[1]);
        }

        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException error) {
                throw new IllegalArgumentException(error);
            }
        }

        public int requestType() {
            return 0;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "";
        }

        public int correlationId() {
            return 0;
        }
    }
}
