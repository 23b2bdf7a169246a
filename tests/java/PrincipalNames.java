// Names of principals by Kafka's SslPrincipalMapper and Java's X500Principal, for
// tests/logd/security/test_principal_rules.py and test_subject_name.py.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/PrincipalNames.java
//
// A line of its input is a command, its fields parted by tabs; each is answered by a line.
//     rules RULES NAME    print the principal's name, `NONE` if no rule applies, or `INVALID`
//     subject BASE64      print the name of a subject in DER

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

public class PrincipalNames {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            out.println(fields[0].equals("rules")
                ? mapped(fields[1], fields[2])
                : new X500Principal(Base64.getDecoder().decode(fields[1])).getName());
        }
        out.flush();
    }

    private static String mapped(String rules, String name) {
        try {
            return SslPrincipalMapper.fromRules(rules).getName(name);
        } catch (IOException error) {
            return "NONE";
        } catch (IllegalArgumentException | IndexOutOfBoundsException error) {
            return "INVALID";
        }
    }
}
