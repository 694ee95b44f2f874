import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/** Kafka Streams, exactly once: it counts words, is stopped, loses its local state, and goes on. */
public final class Streams {
    private static final Map<String, String> ENV = System.getenv();
    private static final String HUB = ENV.get("YARD_HUB");
    private static final String OUT = HUB + "-copy";
    private static final String[] WORDS = {"one", "two", "three", "four", "five", "six", "seven"};
    private static final int EACH = 200; // of each word, in each half
    private static final int PARTITIONS = 4;
    private static final long LIMIT = 90_000; // milliseconds for what must come; far more than it takes

    public static void main(String[] arguments) {
        try {
            for (int half = 1; half <= 2; half++) {
                count(half);
                System.out.println("proved: words counted exactly once" + (half == 2 ? ", also after a restart without local state" : ""));
            }
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0);
    }

    private static void send() throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", ENV.get("YARD_KAFKA")), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < EACH; i++) {
                for (String word : WORDS) {
                    producer.send(new ProducerRecord<>(HUB, "" + i, word));
                }
            }
        }
    }

    private static void count(int half) throws Exception {
        Path local = Files.createTempDirectory("streams");
        Properties settings = new Properties();
        settings.putAll(Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, HUB + "-words",
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, ENV.get("YARD_KAFKA"),
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
            StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100,
            StreamsConfig.STATE_DIR_CONFIG, local.toString(),
            StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2,
            "auto.offset.reset", "earliest",
            StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class,
            StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class));
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(HUB).groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count().toStream().to(OUT, Produced.with(Serdes.String(), Serdes.Long()));
        CountDownLatch failed = new CountDownLatch(1);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(problem -> {
            problem.printStackTrace(System.out);
            failed.countDown();
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        send();
        read(half, failed);
        streams.close(Duration.ofSeconds(30));
    }

    // read waits until the newest count of each word is what was sent. None may be more, nor come before a lower one.
    private static void read(int half, CountDownLatch failed) {
        List<TopicPartition> all = new ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            all.add(new TopicPartition(OUT, p));
        }
        Map<String, Long> newest = new HashMap<>();
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", ENV.get("YARD_KAFKA"), "isolation.level", "read_committed"), new StringDeserializer(), new LongDeserializer())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            long want = (long) EACH * half;
            for (long end = System.currentTimeMillis() + LIMIT; newest.size() < WORDS.length || newest.values().stream().anyMatch(n -> n != want);) {
                if (System.currentTimeMillis() > end || failed.getCount() == 0) {
                    throw new AssertionError("the counts are " + newest + ", want " + want + " of each");
                }
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
                    Long before = newest.put(record.key(), record.value());
                    if (record.value() > want || before != null && before >= record.value()) {
                        throw new AssertionError(record.key() + " is counted " + record.value() + " after " + before + ", want " + want + " at most");
                    }
                }
            }
        }
    }
}
