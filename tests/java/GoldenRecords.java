// Prints records of Kafka's internal topics as Kafka's own classes write them, a line for each message and
// version: its name, the version, the bytes in hexadecimal, and the JSON of Kafka's converters.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/GoldenRecords.java group|transaction
//
// Every field gets a value that tells it from its neighbours; optional ones come once with a value and once
// without (null or empty). What it prints is kept in tests/logd/{groups,transactions}/golden.

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogKey;

public class GoldenRecords {
    /** What the next number, text or uuid is made of: restarted for every message. */
    private static int counter;
    /** The message being filled, and the structs inside it. */
    private static final List<Object> made = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Class<?> sample = arguments[0].equals("group") ? GroupMetadataKey.class : TransactionLogKey.class;
        String folder = sample.getPackageName().replace('.', '/') + "/";
        for (String name : messages(sample, folder)) {
            Class<?> type = Class.forName(sample.getPackageName() + "." + name);
            short first = type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            short last = type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            for (short version = first; version <= last; version++) {
                TreeSet<String> lines = new TreeSet<>();
                for (Fill fill : Fill.values()) {
                    counter = 0;
                    made.clear();
                    lines.add(line(name, (ApiMessage) filled(type, fill), version, fill));
                }
                lines.forEach(System.out::println);
            }
        }
    }

    private static List<String> messages(Class<?> sample, String folder) throws Exception {
        String jar = sample.getProtectionDomain().getCodeSource().getLocation().getPath();
        List<String> names = new ArrayList<>();
        try (JarFile file = new JarFile(jar)) {
            for (var entry : Collections.list(file.entries())) {
                String name = entry.getName();
                if (name.startsWith(folder) && name.matches(".*/[A-Za-z]+(Key|Value)\\.class")) {
                    names.add(name.substring(folder.length(), name.length() - ".class".length()));
                }
            }
        }
        Collections.sort(names);
        return names;
    }

    private static String line(String name, ApiMessage message, short version, Fill fill) throws Exception {
        do { // the first field that does not travel hides the others
            for (Object part : made) {
                for (Method setter : setters(part.getClass())) {
                    keepWhatTravels(message, version, part, setter, fill);
                }
            }
        } while (!travels(message, version, ""));
        ByteBufferAccessor bytes = MessageUtil.toByteBufferAccessor(message, version);
        byte[] data = new byte[bytes.buffer().remaining()];
        bytes.buffer().get(data);
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Method write = converter.getMethod("write", message.getClass(), short.class);
        String hex = HexFormat.of().formatHex(data);
        return name + " " + message.apiKey() + " " + version + " " + hex + " " + write.invoke(null, message, version);
    }

    /** A field that the version lacks keeps its default; for Fill.NULL every field that may be null becomes so. */
    private static void keepWhatTravels(
        ApiMessage message, short version, Object part, Method setter, Fill fill
    ) throws Exception {
        String field = setter.getName().substring(3, 4).toLowerCase() + setter.getName().substring(4);
        Method getter = part.getClass().getMethod(field);
        Object before = getter.invoke(part);
        if (fill == Fill.NULL && !setter.getParameterTypes()[0].isPrimitive()) {
            setter.invoke(part, (Object) null);
            if (!travels(message, version, field)) {
                setter.invoke(part, before);
            }
        } else if (!travels(message, version, field)) {
            setter.invoke(part, getter.invoke(part.getClass().getDeclaredConstructor().newInstance()));
        }
    }

    private static boolean travels(ApiMessage message, short version, String field) {
        try {
            MessageUtil.toByteBufferAccessor(message, version);
            return true;
        } catch (UnsupportedVersionException error) {
            return !error.getMessage().contains(field);
        } catch (NullPointerException error) {
            return false;
        }
    }

    enum Fill { FULL, EMPTY, EXTREME, NULL }

    private static Object filled(Class<?> type, Fill fill) throws Exception {
        Object message = type.getDeclaredConstructor().newInstance();
        made.add(message);
        for (Method setter : setters(type)) {
            Object value = value(setter.getGenericParameterTypes()[0], fill);
            try {
                setter.invoke(message, value);
            } catch (java.lang.reflect.InvocationTargetException error) {
                setter.invoke(message, 443); // the one unsigned number, a port
            }
        }
        return message;
    }

    private static List<Method> setters(Class<?> type) {
        List<Method> found = new ArrayList<>();
        for (Method method : type.getDeclaredMethods()) {
            if (method.getName().startsWith("set") && Modifier.isPublic(method.getModifiers())) {
                found.add(method);
            }
        }
        found.sort((one, other) -> one.getName().compareTo(other.getName()));
        return found;
    }

    private static Object value(Type type, Fill fill) throws Exception {
        counter++;
        if (type == byte.class) {
            return fill == Fill.EMPTY ? (byte) 0 : fill == Fill.EXTREME ? Byte.MIN_VALUE : (byte) counter;
        } else if (type == short.class) {
            return fill == Fill.EMPTY ? (short) 0 : fill == Fill.EXTREME ? Short.MAX_VALUE : (short) (100 + counter);
        } else if (type == int.class) {
            return fill == Fill.EMPTY ? 0 : fill == Fill.EXTREME ? Integer.MIN_VALUE : 1000 + counter;
        } else if (type == long.class) {
            return fill == Fill.EMPTY ? 0L : fill == Fill.EXTREME ? Long.MAX_VALUE : 1_700_000_000_000L + counter;
        } else if (type == boolean.class) {
            return fill == Fill.FULL;
        } else if (type == String.class) {
            return fill == Fill.EMPTY ? "" : fill == Fill.EXTREME ? "größe \"\\ 漢".repeat(counter == 1 ? 13 : 1) : "text" + counter;
        } else if (type == byte[].class) {
            return fill == Fill.EMPTY ? new byte[0] : new byte[] {(byte) counter, 0, -1, 127};
        } else if (type == ByteBuffer.class) {
            return ByteBuffer.wrap(fill == Fill.EMPTY ? new byte[0] : new byte[] {(byte) counter, 0, -1, 127});
        } else if (type == Uuid.class) {
            return fill == Fill.EMPTY ? Uuid.ZERO_UUID : new Uuid(counter, -counter);
        } else if (type instanceof ParameterizedType list) {
            List<Object> elements = new ArrayList<>();
            for (int index = 0; index < (fill == Fill.EMPTY ? 0 : 2); index++) {
                elements.add(value(list.getActualTypeArguments()[0], fill));
            }
            return elements;
        } else if (type == Integer.class) {
            return 1000 + counter;
        } else if (type == Short.class) {
            return (short) (100 + counter);
        }
        return filled((Class<?>) type, fill);
    }
}
