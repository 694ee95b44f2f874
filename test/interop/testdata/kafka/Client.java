import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's own client. */
public final class Client {
    private static final Map<String, String> ENV = System.getenv();
    private static final String HUB = ENV.get("YARD_HUB");
    private static final String[] CODECS = ENV.get("YARD_CODECS").split(" ");
    private static final int PARTITIONS = 4;
    private static final long LIMIT = 60_000; // milliseconds for what must come; far more than it takes

    public static void main(String[] arguments) {
        try {
            for (String codec : CODECS) {
                send(codec);
            }
            System.out.println("proved: an idempotent producer with " + String.join(", ", CODECS));
            read();
            System.out.println("proved: everything read from the beginning, once, and what was sent over AMQP");
            readInGroup();
            System.out.println("proved: everything read in a group, and committed");
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0);
    }

    private static Map<String, Object> settings(Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(more);
        all.put("bootstrap.servers", ENV.get("YARD_KAFKA"));
        if (ENV.containsKey("YARD_USER")) {
            all.put("security.protocol", "SASL_SSL");
            String mechanism = ENV.getOrDefault("YARD_MECHANISM", "PLAIN");
            String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            all.put("sasl.mechanism", mechanism);
            all.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + " required username=\""
                + ENV.get("YARD_USER") + "\" password=\"" + ENV.get("YARD_PASSWORD") + "\";");
            if (mechanism.equals("OAUTHBEARER")) {
                all.put("sasl.jaas.config", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;");
                all.put("sasl.login.callback.handler.class", Bearer.class);
            }
            all.put("ssl.truststore.type", "PEM");
            all.put("ssl.truststore.location", ENV.get("YARD_CA"));
        }
        return all;
    }

    /** Bearer shows a token that it was given. */
    public static final class Bearer implements AuthenticateCallbackHandler {
        @Override
        public void configure(Map<String, ?> settings, String mechanism, List<AppConfigurationEntry> entries) {}

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerTokenCallback asked) {
                    asked.token(new Token());
                } else if (!(callback instanceof SaslExtensionsCallback)) {
                    throw new UnsupportedCallbackException(callback);
                }
            }
        }

        @Override
        public void close() {}
    }

    /** Token is good for an hour. */
    private static final class Token implements OAuthBearerToken {
        private final long from = System.currentTimeMillis();

        @Override
        public String value() {
            return ENV.get("YARD_TOKEN");
        }

        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return from + 3_600_000;
        }

        @Override
        public String principalName() {
            return ENV.get("YARD_USER");
        }

        @Override
        public Long startTimeMs() {
            return from;
        }
    }

    private static Map<String, String> records(String codec) {
        Map<String, String> keys = new HashMap<>(); // by value
        for (int i = 0; i < Integer.parseInt(ENV.get("YARD_EACH")); i++) {
            keys.put(codec + "-" + i, "key-" + i);
        }
        if (codec.equals("none")) {
            keys.put("x".repeat(Integer.parseInt(ENV.get("YARD_LARGE"))), "large");
        }
        return keys;
    }

    private static void send(String codec) throws Exception {
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                settings(Map.of("compression.type", codec, "enable.idempotence", true, "acks", "all", "linger.ms", 20)),
                new StringSerializer(), new StringSerializer())) {
            records(codec).forEach((value, key) -> {
                ProducerRecord<String, String> record = new ProducerRecord<>(HUB, key, value);
                record.headers().add("codec", codec.getBytes());
                answers.add(producer.send(record));
            });
        }
        for (Future<RecordMetadata> answer : answers) {
            answer.get();
        }
    }

    private static void read() {
        List<TopicPartition> all = new ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            all.add(new TopicPartition(HUB, p));
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings(Map.of("enable.auto.commit", false)), new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            readAll(consumer);
        }
    }

    private static void readInGroup() throws Exception {
        Map<String, Object> group = new HashMap<>(Map.of("enable.auto.commit", false, "auto.offset.reset", "earliest", "group.id", ENV.get("YARD_GROUP")));
        if (ENV.containsKey("YARD_PROTOCOL")) {
            group.put("group.protocol", ENV.get("YARD_PROTOCOL"));
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings(group), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(HUB));
            readAll(consumer);
            consumer.commitSync();
            describe();
        }
    }

    // describe finds the group as it is while its only member has all partitions.
    private static void describe() throws Exception {
        String id = ENV.get("YARD_GROUP");
        try (Admin admin = Admin.create(settings(Map.of()))) {
            ConsumerGroupDescription group = admin.describeConsumerGroups(List.of(id)).all().get().get(id);
            int partitions = group.members().iterator().next().assignment().topicPartitions().size();
            if (group.members().size() != 1 || partitions != PARTITIONS || !group.state().toString().equals("Stable")) {
                throw new AssertionError("the group is " + group);
            }
            int described = admin.describeTopics(List.of(HUB)).allTopicNames().get().get(HUB).partitions().size();
            if (described != PARTITIONS || admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().size() != PARTITIONS) {
                throw new AssertionError("the topic has " + described + " partitions, or not all have offsets");
            }
        }
    }

    private static void readAll(KafkaConsumer<String, String> consumer) {
        Map<String, String> missing = new HashMap<>(); // what a record comes with, by value
        for (String codec : CODECS) {
            records(codec).forEach((value, key) -> missing.put(value, key + " " + codec));
        }
        missing.put(ENV.get("YARD_PLANTED"), null);
        for (long end = System.currentTimeMillis() + LIMIT; !missing.isEmpty();) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError(missing.size() + " did not come");
            }
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                take(missing, record);
            }
        }
    }

    private static void take(Map<String, String> missing, ConsumerRecord<String, String> record) {
        String value = record.value();
        String shown = value.substring(0, Math.min(100, value.length()));
        if (!missing.containsKey(value)) {
            throw new AssertionError(shown + " came that was not sent, or came twice");
        }
        String want = missing.remove(value);
        if (want == null) {
            return; // it was sent over AMQP
        }
        String got = record.key() + " " + new String(record.headers().lastHeader("codec").value());
        if (!got.equals(want)) {
            throw new AssertionError(shown + " came with " + got + ", want " + want);
        }
    }
}
