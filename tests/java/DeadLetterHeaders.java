// Prints the headers that Kafka Connect's DeadLetterQueueReporter gives a dead letter, in its order: NAME=VALUE.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/DeadLetterHeaders.java
//
// tests/connect/errors/test_dead_letter_headers.py compares ours with them. All classes of connect-runtime are found by
// name: other programs compile without that jar. Of the stack trace the first line is printed.

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;

public class DeadLetterHeaders {
    static final String ERRORS = "org.apache.kafka.connect.runtime.errors.";

    public static void main(String[] arguments) throws Exception {
        Class<?> reporterClass = Class.forName(ERRORS + "DeadLetterQueueReporter");
        Class<?> contextClass = Class.forName(ERRORS + "ProcessingContext");
        Class<?> stageClass = Class.forName(ERRORS + "Stage");
        Class<?> idClass = Class.forName("org.apache.kafka.connect.util.ConnectorTaskId");

        Field unsafeField = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        unsafeField.setAccessible(true);
        Object reporter = ((sun.misc.Unsafe) unsafeField.get(null)).allocateInstance(reporterClass);
        Field id = reporterClass.getDeclaredField("connectorTaskId");
        id.setAccessible(true);
        id.set(reporter, idClass.getConstructor(String.class, int.class).newInstance("c", 3));

        ConsumerRecord<byte[], byte[]> read = new ConsumerRecord<>("t", 2, 7, "k".getBytes(), "{".getBytes());
        Constructor<?> newContext = contextClass.getConstructors()[0];
        Object context = newContext.newInstance(read);
        Object stage = stageClass.getField("VALUE_CONVERTER").get(null);
        Class<?> executing = Class.forName("org.apache.kafka.connect.storage.StringConverter");
        contextClass.getMethod("currentContext", stageClass, Class.class).invoke(context, stage, executing);
        contextClass.getMethod("error", Throwable.class).invoke(context, new IllegalStateException("bad é"));

        ProducerRecord<byte[], byte[]> letter = new ProducerRecord<>("dead", new byte[0]);
        letter.headers().add("h", "v".getBytes());
        Method populate = reporterClass.getDeclaredMethod("populateContextHeaders", ProducerRecord.class, contextClass);
        populate.setAccessible(true);
        populate.invoke(reporter, letter, context);
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, "UTF-8");
        for (Header header : letter.headers()) {
            out.println(header.key() + "=" + new String(header.value(), "UTF-8").split("\n")[0]);
        }
        for (Object each : stageClass.getEnumConstants()) {
            out.println("stage=" + each);
        }
    }
}
