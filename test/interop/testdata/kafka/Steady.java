import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own client, an idempotent producer that sends numbers to each partition until its input ends, whatever becomes
 * of the nodes meanwhile. Then everything is read: each number once, in the order in which it was sent.
 */
public final class Steady {
    private static final Map<String, String> ENV = System.getenv();
    private static final String HUB = ENV.get("YARD_HUB");
    private static final int PARTITIONS = 4;
    private static final long LIMIT = 60_000; // milliseconds for what must come; far more than it takes

    private static volatile boolean ended;

    public static void main(String[] arguments) {
        try {
            Thread watch = new Thread(Steady::awaitEnd);
            watch.setDaemon(true);
            watch.start();
            long sent = send();
            read(sent);
            System.out.println("proved: " + sent * PARTITIONS + " records of an idempotent producer, each of them once and in order");
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0);
    }

    private static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException closed) {
            // as good as an end
        }
        ended = true;
    }

    private static Map<String, Object> settings(Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(more);
        all.put("bootstrap.servers", ENV.get("YARD_KAFKA"));
        return all;
    }

    private static long send() throws Exception {
        AtomicReference<Exception> problem = new AtomicReference<>();
        long n = 0;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                settings(Map.of("enable.idempotence", true, "acks", "all")), new StringSerializer(), new StringSerializer())) {
            for (; !ended && problem.get() == null; n++) {
                for (int p = 0; p < PARTITIONS; p++) {
                    producer.send(new ProducerRecord<>(HUB, p, null, Long.toString(n)), (place, failed) -> {
                        if (failed != null) {
                            problem.compareAndSet(null, failed);
                        }
                    });
                }
                if (n == 0) {
                    System.out.println("sending");
                }
                Thread.sleep(5); // so that it is a steady stream, and not all there is room for
            }
        }
        if (problem.get() != null) {
            throw problem.get();
        }
        return n;
    }

    private static void read(long sent) {
        List<TopicPartition> all = new ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            all.add(new TopicPartition(HUB, p));
        }
        long[] next = new long[PARTITIONS];
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings(Map.of("enable.auto.commit", false)), new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            long missing = sent * PARTITIONS;
            for (long end = System.currentTimeMillis() + LIMIT; missing > 0;) {
                if (System.currentTimeMillis() > end) {
                    throw new AssertionError(missing + " did not come");
                }
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    if (!record.value().equals(Long.toString(next[record.partition()]++))) {
                        throw new AssertionError("partition " + record.partition() + " has " + record.value() + " at " + record.offset()
                            + ", want " + (next[record.partition()] - 1));
                    }
                    missing--;
                }
            }
        }
    }
}
