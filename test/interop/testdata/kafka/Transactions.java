import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions of Kafka's own client. */
public final class Transactions {
    private static final Map<String, String> ENV = System.getenv();
    private static final String HUB = ENV.get("YARD_HUB");
    private static final int COUNT = Integer.parseInt(ENV.get("YARD_TRANSACTIONS"));
    private static final int SIZE = Integer.parseInt(ENV.get("YARD_SIZE"));
    private static final int PARTITIONS = 4;
    private static final long LIMIT = 60_000; // milliseconds for what must come; far more than it takes

    public static void main(String[] arguments) {
        try {
            write();
            System.out.println("proved: transactions, committed and aborted, and an older producer fenced");
            read(HUB);
            System.out.println("proved: what is committed is read, once, and nothing else");
            copy();
            read(HUB + "-copy");
            System.out.println("proved: a hub copied with its offsets");
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0);
    }

    private static Map<String, Object> settings(Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(more);
        all.put("bootstrap.servers", ENV.get("YARD_KAFKA"));
        return all;
    }

    private static KafkaProducer<String, String> producer(String id) {
        KafkaProducer<String, String> producer = new KafkaProducer<>(
            settings(Map.of("transactional.id", id, "linger.ms", 5)), new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    private static KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(more);
        all.put("isolation.level", "read_committed");
        all.put("enable.auto.commit", false);
        all.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings(all), new StringDeserializer(), new StringDeserializer());
    }

    private static void write() throws Exception {
        KafkaProducer<String, String> old = producer(HUB + "-writer");
        old.beginTransaction();
        old.send(new ProducerRecord<>(HUB, "lost", "lost")).get();
        try (KafkaProducer<String, String> producer = producer(HUB + "-writer")) {
            for (int n = 0; n < COUNT; n++) {
                producer.beginTransaction();
                List<Future<RecordMetadata>> answers = new ArrayList<>();
                for (int i = 0; i < SIZE; i++) {
                    answers.add(producer.send(new ProducerRecord<>(HUB, "" + i, n + "-" + i)));
                }
                for (Future<RecordMetadata> answer : answers) {
                    answer.get();
                }
                if (n == 1) {
                    describe();
                }
                if (n % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        try {
            old.commitTransaction();
            throw new AssertionError("a producer that was replaced has committed");
        } catch (ProducerFencedException expected) {
            old.close();
        }
    }

    // describe finds the transaction as it is while it goes on.
    private static void describe() throws Exception {
        String id = HUB + "-writer";
        try (Admin admin = Admin.create(settings(Map.of()))) {
            String state = admin.describeTransactions(List.of(id)).all().get().get(id).state().toString();
            boolean listed = admin.listTransactions().all().get().stream().anyMatch(t -> t.transactionalId().equals(id));
            if (!state.equals("Ongoing") || !listed) {
                throw new AssertionError("the transaction is " + state + ", listed: " + listed);
            }
        }
    }

    private static Set<String> committed() {
        Set<String> all = new HashSet<>();
        for (int n = 0; n < COUNT; n += 2) {
            for (int i = 0; i < SIZE; i++) {
                all.add(n + "-" + i);
            }
        }
        return all;
    }

    private static void take(Set<String> missing, ConsumerRecord<String, String> record) {
        if (!missing.remove(record.value())) {
            throw new AssertionError(record.value() + " came that does not count, or came twice");
        }
    }

    private static void read(String hub) {
        List<TopicPartition> all = new ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            all.add(new TopicPartition(hub, p));
        }
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Set<String> missing = committed();
            for (long end = System.currentTimeMillis() + LIMIT; !missing.isEmpty() || behind(consumer, all);) {
                if (System.currentTimeMillis() > end) {
                    throw new AssertionError(missing.size() + " did not come, or the end was not reached");
                }
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    take(missing, record);
                }
            }
        }
    }

    // behind tells whether the consumer has not come to the end of what is committed, as who restores a table asks.
    private static boolean behind(KafkaConsumer<String, String> consumer, List<TopicPartition> all) {
        return consumer.endOffsets(all).entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue());
    }

    private static void copy() throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(Map.of("group.id", ENV.get("YARD_GROUP")));
                KafkaProducer<String, String> producer = producer(HUB + "-copier")) {
            consumer.subscribe(List.of(HUB));
            Set<String> missing = committed();
            for (long end = System.currentTimeMillis() + LIMIT; !missing.isEmpty();) {
                if (System.currentTimeMillis() > end) {
                    throw new AssertionError(missing.size() + " did not come");
                }
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    take(missing, record);
                    producer.send(new ProducerRecord<>(HUB + "-copy", record.partition(), record.key(), record.value()));
                    offsets.put(new TopicPartition(HUB, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
            }
            long committed = consumer.committed(consumer.assignment()).values().stream().filter(o -> o != null).count();
            if (committed == 0) {
                throw new AssertionError("no offsets were committed");
            }
        }
    }
}
