import java.io.*;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;

/**
 * Kafka's converters, for bytes from stdin: one conversion a line, `class|setting=value;...|base64`. Prints the schema
 * and value, and what the converter writes for them: `schema value|base64`, or `error`. With the argument `header` they
 * are header converters. tests/connect/converters/dumps.py prints schemas and values in the same way.
 */
public class ConnectData {
    public static void main(String[] arguments) throws Exception {
        boolean header = arguments.length > 0 && arguments[0].equals("header");
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Object> converters = new HashMap<>();
        for (String line; (line = lines.readLine()) != null;) {
            String[] parts = line.split("\\|", -1);
            Object converter = converters.get(parts[0] + parts[1]);
            if (converter == null) {
                converter = Class.forName(parts[0]).getDeclaredConstructor().newInstance();
                Map<String, String> config = new HashMap<>(Map.of("converter.type", header ? "header" : "value"));
                for (String setting : parts[1].isEmpty() ? new String[0] : parts[1].split(";"))
                    config.put(setting.substring(0, setting.indexOf('=')), setting.substring(setting.indexOf('=') + 1));
                if (header) ((HeaderConverter) converter).configure(config);
                else ((Converter) converter).configure(config, false);
                converters.put(parts[0] + parts[1], converter);
            }
            byte[] data = parts[2].equals("-") ? null : Base64.getDecoder().decode(parts[2]);
            out.println(converted(converter, header, data));
        }
        out.flush();
    }

    static String converted(Object converter, boolean header, byte[] data) {
        String dumped;
        SchemaAndValue read;
        try {
            read = header ? ((HeaderConverter) converter).toConnectHeader("t", "h", data)
                          : ((Converter) converter).toConnectData("t", data);
            if (read == null) return "null null|-";
            dumped = schema(read.schema()) + " " + value(read.schema(), read.value());
        } catch (RuntimeException e) {
            return "error " + e.toString().replace("\n", " ");
        }
        try {
            byte[] written = header ? ((HeaderConverter) converter).fromConnectHeader("t", "h", read.schema(), read.value())
                                    : ((Converter) converter).fromConnectData("t", read.schema(), read.value());
            return dumped + "|" + (written == null ? "-" : Base64.getEncoder().encodeToString(written));
        } catch (RuntimeException e) {
            return dumped + "|error " + e.toString().replace("\n", " ");
        }
    }

    static String schema(Schema schema) {
        if (schema == null) return "null";
        StringBuilder text = new StringBuilder(schema.type().getName()).append(schema.isOptional() ? "?" : "");
        if (schema.name() != null) text.append(" name=").append(schema.name());
        if (schema.version() != null) text.append(" version=").append(schema.version());
        if (schema.doc() != null) text.append(" doc=").append(schema.doc());
        if (schema.parameters() != null) text.append(" parameters=").append(new TreeMap<>(schema.parameters()));
        if (schema.defaultValue() != null) text.append(" default=").append(value(schema, schema.defaultValue()));
        if (schema.type() == Schema.Type.STRUCT)
            for (Field field : schema.fields()) text.append(' ').append(field.name()).append('=').append(schema(field.schema()));
        if (schema.type() == Schema.Type.MAP) text.append(" keys=").append(schema(schema.keySchema()));
        if (schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY)
            text.append(" values=").append(schema(schema.valueSchema()));
        return "(" + text + ")";
    }

    static String value(Schema schema, Object value) {
        if (value == null) return "null";
        if (value instanceof Float) return "float:" + Integer.toHexString(Float.floatToIntBits((Float) value));
        if (value instanceof Double) return "double:" + Long.toHexString(Double.doubleToLongBits((Double) value));
        if (value instanceof Number && !(value instanceof BigDecimal)) return "integer:" + value;
        if (value instanceof BigDecimal)
            return "decimal:" + ((BigDecimal) value).unscaledValue() + "e" + -((BigDecimal) value).scale();
        if (value instanceof byte[]) return "bytes:" + Base64.getEncoder().encodeToString((byte[]) value);
        if (value instanceof ByteBuffer) return "bytes:" + Base64.getEncoder().encodeToString(((ByteBuffer) value).array());
        if (value instanceof String)
            return "string:" + Base64.getEncoder().encodeToString(((String) value).getBytes(StandardCharsets.UTF_8));
        if (value instanceof Date) return "time:" + ((Date) value).getTime();
        if (value instanceof List) {
            StringJoiner items = new StringJoiner(",", "[", "]");
            for (Object item : (List<?>) value) items.add(value(schema == null ? null : schema.valueSchema(), item));
            return items.toString();
        }
        if (value instanceof Map) {
            TreeSet<String> entries = new TreeSet<>();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet())
                entries.add(value(schema == null ? null : schema.keySchema(), entry.getKey()) + "="
                    + value(schema == null ? null : schema.valueSchema(), entry.getValue()));
            return "{" + String.join(",", entries) + "}";
        }
        if (value instanceof Struct) {
            StringJoiner fields = new StringJoiner(",", "(", ")");
            for (Field field : ((Struct) value).schema().fields())
                fields.add(field.name() + "=" + value(field.schema(), ((Struct) value).getWithoutDefault(field.name())));
            return fields.toString();
        }
        return "boolean:" + value;
    }
}
