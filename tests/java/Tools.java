// Runs Kafka's command-line tools for the transcripts in tests/millstream/kafka_tools, all in one JVM: one
// takes two seconds to start. A line on stdin is a command: its words in base64, the first the tool's class,
// the last what the tool reads on its stdin. The answer is a line: exit status, stdout and stderr, in base64.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.security.Policy;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.internals.Exit;

@SuppressWarnings("removal")
public class Tools {
    private static final long SECONDS = 120;
    private static final Base64.Encoder ENCODER = Base64.getEncoder();
    private static final Base64.Decoder DECODER = Base64.getDecoder();

    private static volatile BlockingQueue<Integer> ended;
    private static final List<Runnable> hooks = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setHaltProcedure((status, message) -> exit(status));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        Policy.setPolicy(new Anything());
        System.setSecurityManager(new Exits());
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ", -1))
                words.add(new String(DECODER.decode(word), StandardCharsets.UTF_8));
            answers.println(answer(words));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String answer(List<String> words) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream usualErr = System.err;
        hooks.clear();
        ended = new ArrayBlockingQueue<>(1);
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(words.get(words.size() - 1).getBytes(StandardCharsets.UTF_8)));
        String[] rest = words.subList(1, words.size() - 1).toArray(String[]::new);
        BlockingQueue<Integer> mine = ended;
        Thread thread = new Thread(() -> mine.offer(run(words.get(0), rest)), "tool");
        thread.setDaemon(true);
        thread.start();
        Integer status = ended.poll(SECONDS, TimeUnit.SECONDS);
        for (Runnable hook : hooks)
            hook.run();
        System.out.flush();
        System.setErr(usualErr);
        return (status == null ? "never" : status) + " " + encoded(out) + " " + encoded(err);
    }

    /** A tool's main, as the JVM would call it; the status it ends with where it does not exit. */
    private static int run(String tool, String[] arguments) {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException e) {
            System.err.print("Exception in thread \"main\" ");
            e.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException e) {
            System.err.println(e + " " + Arrays.toString(arguments));
            return 1;
        }
    }

    /** Nothing of a tool runs behind its exit: its thread stays here for ever. */
    private static void exit(int status) {
        ended.offer(status);
        try {
            new CountDownLatch(1).await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** argparse4j ends the JVM without asking Kafka's Exit. */
    private static class Exits extends SecurityManager {
        @Override
        public void checkExit(int status) {
            if (Thread.currentThread().getName().equals("tool"))
                exit(status);
        }

        @Override
        public void checkPermission(Permission permission) {
        }
    }

    /** Management asks it besides: whoever registers metrics must be trusted. */
    private static class Anything extends Policy {
        @Override
        public boolean implies(ProtectionDomain domain, Permission permission) {
            return true;
        }
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return ENCODER.encodeToString(bytes.toByteArray());
    }
}
