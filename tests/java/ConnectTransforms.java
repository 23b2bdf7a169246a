import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Applies Kafka Connect's transforms to records. Each line of the input is {"transform", "config", "record"},
 * each of the output the changed record, {"config_error"} or {"error"}. Values are [tag, payload].
 */
public class ConnectTransforms {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
        out.flush();
    }

    @SuppressWarnings("unchecked")
    private static ObjectNode answer(JsonNode request) throws Exception {
        var result = JSON.createObjectNode();
        var name = "org.apache.kafka.connect.transforms." + request.get("transform").asText();
        var transform = (Transformation<SinkRecord>) Class.forName(name).getConstructor().newInstance();
        Map<String, String> config = new HashMap<>();
        request.get("config").fields().forEachRemaining(e -> config.put(e.getKey(), e.getValue().asText()));
        SinkRecord record = record(request.get("record"));
        try {
            transform.configure(config);
        } catch (RuntimeException e) {
            return result.put("config_error", e.toString());
        }
        try {
            return described(transform.apply(record));
        } catch (RuntimeException e) {
            return result.put("error", e.toString());
        }
    }

    private static SinkRecord record(JsonNode node) {
        var headers = new ConnectHeaders();
        for (JsonNode header : node.get("headers")) {
            Schema schema = schema(header.get(1));
            headers.add(header.get(0).asText(), value(header.get(2), schema), schema);
        }
        Schema key = schema(node.get("key_schema"));
        Schema value = schema(node.get("value_schema"));
        Long timestamp = node.get("timestamp").isNull() ? null : node.get("timestamp").asLong();
        return new SinkRecord(
            node.get("topic").asText(), node.get("partition").asInt(), key, value(node.get("key"), key), value,
            value(node.get("value"), value), node.get("offset").asLong(), timestamp, TimestampType.CREATE_TIME, headers);
    }

    private static ObjectNode described(SinkRecord record) {
        var node = JSON.createObjectNode();
        node.put("topic", record.topic());
        node.set("key_schema", described(record.keySchema()));
        node.set("key", described(record.key()));
        node.set("value_schema", described(record.valueSchema()));
        node.set("value", described(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(described(header.schema())).add(described(header.value()));
        }
        return node;
    }

    private static Schema schema(JsonNode node) {
        if (node.isNull()) {
            return null;
        }
        var type = Schema.Type.valueOf(node.get("type").asText());
        SchemaBuilder builder;
        if (type == Schema.Type.ARRAY) {
            builder = SchemaBuilder.array(schema(node.get("values")));
        } else if (type == Schema.Type.MAP) {
            builder = SchemaBuilder.map(schema(node.get("keys")), schema(node.get("values")));
        } else {
            builder = new SchemaBuilder(type);
        }
        if (node.get("optional").asBoolean()) {
            builder.optional();
        }
        if (!node.get("name").isNull()) {
            builder.name(node.get("name").asText());
        }
        if (!node.get("version").isNull()) {
            builder.version(node.get("version").asInt());
        }
        if (!node.get("doc").isNull()) {
            builder.doc(node.get("doc").asText());
        }
        node.get("parameters").fields().forEachRemaining(e -> builder.parameter(e.getKey(), e.getValue().asText()));
        for (JsonNode field : node.get("fields")) {
            builder.field(field.get(0).asText(), schema(field.get(1)));
        }
        if (!node.get("default").isNull()) {
            builder.defaultValue(value(node.get("default"), builder));
        }
        return builder.build();
    }

    private static JsonNode described(Schema schema) {
        if (schema == null) {
            return JSON.nullNode();
        }
        var node = JSON.createObjectNode();
        node.put("type", schema.type().name());
        node.put("optional", schema.isOptional());
        node.put("name", schema.name());
        node.put("version", schema.version());
        node.put("doc", schema.doc());
        ObjectNode parameters = node.putObject("parameters");
        if (schema.parameters() != null) {
            schema.parameters().forEach(parameters::put);
        }
        ArrayNode fields = node.putArray("fields");
        if (schema.type() == Schema.Type.STRUCT) {
            for (Field field : schema.fields()) {
                fields.addArray().add(field.name()).add(described(field.schema()));
            }
        }
        boolean isMap = schema.type() == Schema.Type.MAP;
        node.set("keys", isMap ? described(schema.keySchema()) : JSON.nullNode());
        node.set("values", isMap || schema.type() == Schema.Type.ARRAY ? described(schema.valueSchema()) : JSON.nullNode());
        node.set("default", described(schema.defaultValue()));
        return node;
    }

    private static Object value(JsonNode node, Schema schema) {
        if (node.isNull()) {
            return null;
        }
        JsonNode payload = node.get(1);
        String text = payload.asText();
        Schema.Type type = schema == null ? null : schema.type();
        switch (node.get(0).asText()) {
            case "int":
                if (type == Schema.Type.INT8) {
                    return Byte.valueOf(text);
                }
                if (type == Schema.Type.INT16) {
                    return Short.valueOf(text);
                }
                return type == Schema.Type.INT32 ? (Object) Integer.valueOf(text) : Long.valueOf(text);
            case "float":
                return type == Schema.Type.FLOAT32 ? (Object) Float.valueOf(text) : Double.valueOf(text);
            case "bool":
                return payload.asBoolean();
            case "str":
                return text;
            case "bytes":
                return Base64.getDecoder().decode(text);
            case "dec":
                return new BigDecimal(text);
            case "date":
                return new Date(payload.asLong());
            case "list":
                List<Object> list = new ArrayList<>();
                for (JsonNode item : payload) {
                    list.add(value(item, schema == null ? null : schema.valueSchema()));
                }
                return list;
            case "map":
                return map(payload, schema);
            default:
                throw new IllegalArgumentException(node.toString());
        }
    }

    private static Object map(JsonNode entries, Schema schema) {
        if (schema != null && schema.type() == Schema.Type.STRUCT) {
            var struct = new Struct(schema);
            for (JsonNode entry : entries) {
                String name = entry.get(0).get(1).asText();
                if (!entry.get(1).isNull()) {
                    struct.put(name, value(entry.get(1), schema.field(name).schema()));
                }
            }
            return struct;
        }
        Map<Object, Object> map = new LinkedHashMap<>();
        for (JsonNode entry : entries) {
            Object key = value(entry.get(0), schema == null ? null : schema.keySchema());
            map.put(key, value(entry.get(1), schema == null ? null : schema.valueSchema()));
        }
        return map;
    }

    private static JsonNode described(Object value) {
        if (value == null) {
            return JSON.nullNode();
        }
        ArrayNode node = JSON.createArrayNode();
        if (value instanceof Float || value instanceof Double) {
            return node.add("float").add(Double.toString(((Number) value).doubleValue()));
        } else if (value instanceof BigDecimal) {
            return node.add("dec").add(value.toString());
        } else if (value instanceof Number) {
            return node.add("int").add(value.toString());
        } else if (value instanceof Boolean) {
            return node.add("bool").add((Boolean) value);
        } else if (value instanceof String) {
            return node.add("str").add((String) value);
        } else if (value instanceof Date) {
            return node.add("date").add(((Date) value).getTime());
        } else if (value instanceof byte[] || value instanceof ByteBuffer) {
            byte[] bytes = value instanceof byte[] ? (byte[]) value : ((ByteBuffer) value).array();
            return node.add("bytes").add(Base64.getEncoder().encodeToString(bytes));
        } else if (value instanceof List) {
            ArrayNode items = node.add("list").addArray();
            ((List<?>) value).forEach(item -> items.add(described(item)));
            return node;
        }
        ArrayNode entries = node.add("map").addArray();
        if (value instanceof Struct) {
            var struct = (Struct) value;
            for (Field field : struct.schema().fields()) {
                ArrayNode entry = entries.addArray().add(described(field.name()));
                entry.add(described(struct.getWithoutDefault(field.name())));
            }
        } else {
            ((Map<?, ?>) value).forEach((k, v) -> entries.addArray().add(described(k)).add(described(v)));
        }
        return node;
    }
}
