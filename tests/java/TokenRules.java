import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslException;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.internals.BrokerSecurityConfigs;
import org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator;
import org.apache.kafka.common.security.oauthbearer.JwtValidatorException;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerClientInitialResponse;

/**
 * Kafka's decisions about tokens and first messages of OAUTHBEARER, a line for each line of the input:
 *
 *     new  URL-OF-KEYS  AUDIENCES  ISSUER  SKEW-SECONDS    no output
 *     token  TOKEN                                         USER  EXPIRES-MS, or "invalid"
 *     message  BASE64                                      AUTHORIZATION-ID  TOKEN, or "invalid"
 */
public class TokenRules {
    public static void main(String[] arguments) {
        BrokerJwtValidator validator = null;
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split("\t", -1);
            switch (words[0]) {
                case "new" -> validator = validator(words);
                case "token" -> System.out.println(token(validator, words[1]));
                case "message" -> System.out.println(message(Base64.getDecoder().decode(words[1])));
                default -> throw new IllegalArgumentException(words[0]);
            }
        }
    }

    private static BrokerJwtValidator validator(String[] words) {
        System.setProperty(BrokerSecurityConfigs.ALLOWED_SASL_OAUTHBEARER_URLS_CONFIG, words[1]);
        Map<String, Object> configs = new HashMap<>();
        configs.put(SaslConfigs.SASL_OAUTHBEARER_JWKS_ENDPOINT_URL, words[1]);
        configs.put(SaslConfigs.SASL_OAUTHBEARER_EXPECTED_AUDIENCE, List.of(words[2].split(",")));
        configs.put(SaslConfigs.SASL_OAUTHBEARER_EXPECTED_ISSUER, words[3]);
        configs.put(SaslConfigs.SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS, Integer.valueOf(words[4]));
        configs.put(SaslConfigs.SASL_OAUTHBEARER_SCOPE_CLAIM_NAME, "scope");
        configs.put(SaslConfigs.SASL_OAUTHBEARER_SUB_CLAIM_NAME, "sub");
        configs.put(SaslConfigs.SASL_OAUTHBEARER_ALLOW_UNVERIFIED_AUDIENCE, false);
        configs.put(SaslConfigs.SASL_OAUTHBEARER_ALLOW_UNVERIFIED_ISSUER, false);
        BrokerJwtValidator validator = new BrokerJwtValidator();
        AppConfigurationEntry entry = new AppConfigurationEntry(
            OAuthBearerLoginModule.class.getName(), AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of());
        validator.configure(configs, "OAUTHBEARER", List.of(entry));
        return validator;
    }

    private static String token(BrokerJwtValidator validator, String text) {
        try {
            OAuthBearerToken token = validator.validate(text);
            return token.principalName() + "\t" + token.lifetimeMs();
        } catch (JwtValidatorException error) {
            return "invalid";
        }
    }

    private static String message(byte[] bytes) {
        try {
            OAuthBearerClientInitialResponse response = new OAuthBearerClientInitialResponse(bytes);
            return response.authorizationId() + "\t" + response.tokenValue();
        } catch (SaslException | IllegalArgumentException error) {
            // The latter for a scheme other than Bearer, as Kafka asks the wrong matcher for its group.
            return "invalid";
        }
    }
}
