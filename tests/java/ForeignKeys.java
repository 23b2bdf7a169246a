// Prints the bytes by which the two sides of a foreign-key join talk, and the hashes in them: what
// tests/streams/dsl/test_foreign_keys.py holds ours to, and writes anew with REWRITE=1 to
// tests/streams/golden/foreign-keys.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/ForeignKeys.java

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionResponseWrapper;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionResponseWrapperSerde;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionWrapper;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionWrapper.Instruction;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionWrapperSerde;
import org.apache.kafka.streams.state.internals.Murmur3;

public class ForeignKeys {
    public static void main(String[] arguments) {
        System.out.println("== hashes");
        for (int length = 0; length < 50; length++) {
            byte[] data = new byte[length];
            for (int i = 0; i < length; i++) {
                data[i] = (byte) (i * 37 + length);
            }
            long[] hash = Murmur3.hash128(data);
            System.out.printf("%d %016x%016x%n", length, hash[0], hash[1]);
        }
        long[] hash = Murmur3.hash128("value".getBytes(StandardCharsets.UTF_8));
        System.out.println("== subscriptions");
        Headers headers = new RecordHeaders();
        SubscriptionWrapperSerde<String> subscriptions = new SubscriptionWrapperSerde<>(() -> "", Serdes.String());
        for (Instruction instruction : Instruction.values()) {
            for (long[] each : new long[][] {hash, null}) {
                tell(subscriptions.serializer().serialize(
                    "", headers, new SubscriptionWrapper<>(each, instruction, "key", 5)));
            }
        }
        byte old = 0;
        tell(subscriptions.serializer().serialize(
            "", headers, new SubscriptionWrapper<>(hash, Instruction.DELETE_KEY_AND_PROPAGATE, "key", old, null)));
        System.out.println("== responses");
        SubscriptionResponseWrapperSerde<String> responses = new SubscriptionResponseWrapperSerde<>(Serdes.String());
        for (String value : new String[] {"foreign", null}) {
            for (long[] each : new long[][] {hash, null}) {
                tell(responses.serializer().serialize("", headers, new SubscriptionResponseWrapper<>(each, value, 5)));
            }
        }
    }

    private static void tell(byte[] data) {
        System.out.println(HexFormat.of().formatHex(data));
    }
}
