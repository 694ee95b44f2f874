import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka's own client, a member of a group. It reads numbers, commits what it has read, and says what it has, what it reads
 * and what is committed, until its input ends.
 */
public final class Member {
    private static final Map<String, String> ENV = System.getenv();
    private static final String HUB = ENV.get("YARD_HUB");

    private static volatile boolean ended;

    public static void main(String[] arguments) {
        try {
            Thread watch = new Thread(Member::awaitEnd);
            watch.setDaemon(true);
            watch.start();
            run();
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

    private static Map<String, Object> settings() {
        Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", ENV.get("YARD_KAFKA"), "group.id", ENV.get("YARD_GROUP"),
            "enable.auto.commit", false, "auto.offset.reset", "earliest"));
        if (ENV.containsKey("YARD_PROTOCOL")) { // the rest is the yard's to say
            all.put("group.protocol", ENV.get("YARD_PROTOCOL"));
        } else {
            boolean cooperative = ENV.containsKey("YARD_COOPERATIVE");
            all.put("partition.assignment.strategy", cooperative ? CooperativeStickyAssignor.class.getName() : RangeAssignor.class.getName());
            all.put("session.timeout.ms", ENV.get("YARD_SESSION"));
            all.put("heartbeat.interval.ms", 1000);
        }
        if (ENV.containsKey("YARD_INSTANCE")) {
            all.put("group.instance.id", ENV.get("YARD_INSTANCE"));
        }
        return all;
    }

    private static void run() {
        Set<Integer> had = null;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings(), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(HUB));
            while (!ended) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                Set<Integer> has = new TreeSet<>();
                consumer.assignment().forEach(p -> has.add(p.partition()));
                if (!has.equals(had)) {
                    say("has", has.toArray());
                    had = has;
                }
                if (records.isEmpty()) {
                    continue;
                }
                Map<Integer, Long> read = new HashMap<>();
                for (TopicPartition p : records.partitions()) {
                    List<ConsumerRecord<String, String>> some = records.records(p);
                    for (ConsumerRecord<String, String> record : some) {
                        if (!record.value().equals(Long.toString(record.offset()))) {
                            throw new AssertionError("partition " + p.partition() + " has " + record.value() + " at " + record.offset());
                        }
                    }
                    long last = some.get(some.size() - 1).offset();
                    say("read", p.partition(), some.get(0).offset(), last);
                    read.put(p.partition(), last + 1);
                }
                try {
                    consumer.commitSync();
                    read.forEach((p, next) -> say("committed", p, next));
                } catch (CommitFailedException | RebalanceInProgressException | RetriableException refused) {
                    say("refused", refused); // it is read again, by whoever has it then
                }
            }
        }
    }

    private static void say(String what, Object... rest) {
        StringBuilder line = new StringBuilder(what);
        for (Object one : rest) {
            line.append(' ').append(one);
        }
        System.out.println(line);
    }
}
