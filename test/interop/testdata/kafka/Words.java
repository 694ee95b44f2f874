import java.nio.file.Files;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/** Kafka Streams, one instance of a program that counts words, until its input ends. */
public final class Words {
    private static final Map<String, String> ENV = System.getenv();
    private static final String HUB = ENV.get("YARD_HUB");

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.putAll(Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, HUB + "-words",
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, ENV.get("YARD_KAFKA"),
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, ENV.get("YARD_GUARANTEE"),
            StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100,
            StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("words").toString(),
            "auto.offset.reset", "earliest",
            "session.timeout.ms", 6000,
            StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class,
            StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class));
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(HUB).groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count().toStream().to(HUB + "-copy", Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(problem -> {
            problem.printStackTrace(System.out);
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        streams.close(java.time.Duration.ofSeconds(30));
        System.exit(0);
    }
}
