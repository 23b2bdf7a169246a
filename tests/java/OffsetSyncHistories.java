// Translates offsets by Kafka's OffsetSyncStore: histories of offset syncs on stdin, translations on stdout.
//
//     java -cp "$KAFKA_LIBS/*" tests/java/OffsetSyncHistories.java
//
// Each line is a history of one partition, its words separated by spaces: `latest` or `all` (what of the syncs
// that are loaded is used), then `UPSTREAM:DOWNSTREAM` (a sync), `end` (everything is loaded) and `?UPSTREAM` (an
// offset to translate). The answer has the translations, separated by spaces, `none` where there is none.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.OffsetSyncStore;

public class OffsetSyncHistories {
    private static final TopicPartition TP = new TopicPartition("t", 0);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        List<String> answers = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.add(answer(line.split(" ")));
        }
        System.out.println(String.join("\n", answers));
    }

    private static String answer(String[] words) throws Exception {
        Constructor<OffsetSyncStore> make = OffsetSyncStore.class.getDeclaredConstructor();
        make.setAccessible(true);
        OffsetSyncStore store = make.newInstance();
        set(store, "initializationMustReadToEnd", words[0].equals("latest"));
        List<String> translations = new ArrayList<>();
        for (int i = 1; i < words.length; i++) {
            if (words[i].equals("end")) {
                set(store, "readToEnd", true);
            } else if (words[i].startsWith("?")) {
                OptionalLong offset = store.translateDownstream("g", TP, Long.parseLong(words[i].substring(1)));
                translations.add(offset.isPresent() ? "" + offset.getAsLong() : "none");
            } else {
                String[] pair = words[i].split(":");
                add(store, new OffsetSync(TP, Long.parseLong(pair[0]), Long.parseLong(pair[1])));
            }
        }
        return String.join(" ", translations);
    }

    private static void add(OffsetSyncStore store, OffsetSync sync) throws Exception {
        Method handle = OffsetSyncStore.class.getDeclaredMethod("handleRecord", ConsumerRecord.class);
        handle.setAccessible(true);
        handle.invoke(store, new ConsumerRecord<>("s", 0, 0, part(sync, "recordKey"), part(sync, "recordValue")));
    }

    private static byte[] part(OffsetSync sync, String method) throws Exception {
        Method part = OffsetSync.class.getDeclaredMethod(method);
        part.setAccessible(true);
        return (byte[]) part.invoke(sync);
    }

    private static void set(OffsetSyncStore store, String name, boolean value) throws Exception {
        Field field = OffsetSyncStore.class.getDeclaredField(name);
        field.setAccessible(true);
        field.setBoolean(store, value);
    }
}
