import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.core.util.IterableStream;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventDataBatch;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubConsumerClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.EventHubProperties;
import com.azure.messaging.eventhubs.PartitionProperties;
import com.azure.messaging.eventhubs.models.CreateBatchOptions;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import com.azure.messaging.eventhubs.models.ReceiveOptions;
import com.azure.messaging.eventhubs.models.SendOptions;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.qpid.proton.amqp.DescribedType;
import org.apache.qpid.proton.amqp.UnknownDescribedType;
import reactor.core.publisher.Mono;

/** The official library for Java. */
public final class Interop {
    /** Waiting for what must come; far more than any of it takes. */
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final String CONNECTION = System.getenv("YARD_CONNECTION");
    private static final String LISTENER = System.getenv("YARD_LISTENER");
    private static final String HUB = CONNECTION.replaceAll(".*EntityPath=([^;]*).*", "$1");
    /** Keys and the partition of four that Azure's hash puts them in. */
    private static final Map<String, String> KEYS =
        Map.of("7", "3", "131", "2", "FWfAT", "1", "$0cb", "1", "!c*_!I@1^c", "0", "abcdefghijkl", "1", "日本語", "1");

    public static void main(String[] arguments) {
        try {
            sending();
            largeBatch();
            keys();
            positions();
            unusual();
            described();
            ownerLevels();
            information();
            access();
            rotation();
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0); // the library's threads would keep us
    }

    private static EventHubClientBuilder builder(String connection, String group) {
        return configured(new EventHubClientBuilder().connectionString(connection).consumerGroup(group));
    }

    private static EventHubClientBuilder configured(EventHubClientBuilder builder) {
        builder.retryOptions(new AmqpRetryOptions().setMaxRetries(1).setDelay(Duration.ofMillis(200)).setTryTimeout(Duration.ofSeconds(20)));
        if (System.getenv("YARD_WEBSOCKET") != null) {
            builder.transportType(AmqpTransportType.AMQP_WEB_SOCKETS);
        }
        return builder;
    }

    private static EventHubProducerClient producer() {
        return builder(CONNECTION, "$Default").buildProducerClient();
    }

    private static List<PartitionEvent> read(String partition, int count, EventPosition position) {
        try (EventHubConsumerClient client = builder(CONNECTION, "$Default").buildConsumerClient()) {
            List<PartitionEvent> found = new ArrayList<>();
            EventPosition next = position;
            while (found.size() < count) {
                IterableStream<PartitionEvent> some = client.receiveFromPartition(partition, count - found.size(), next, LIMIT);
                int before = found.size();
                some.forEach(found::add);
                check(found.size() > before, "events within the limit, after " + before + " of " + count);
                next = EventPosition.fromSequenceNumber(found.get(found.size() - 1).getData().getSequenceNumber());
            }
            return found;
        }
    }

    private static void sending() {
        UUID id = UUID.randomUUID();
        try (EventHubProducerClient client = producer()) {
            EventData single = new EventData("single");
            single.getProperties().putAll(Map.of("text", "ü", "number", 7, "long", 1L << 40, "flag", true));
            single.setContentType("text/plain").setMessageId(id.toString()).setCorrelationId("correlation");
            client.send(List.of(single), new SendOptions().setPartitionId("0"));
            EventDataBatch batch = client.createBatch(new CreateBatchOptions().setPartitionId("0"));
            for (int i = 0; i < 100; i++) {
                check(batch.tryAdd(new EventData("batch " + i)), "room in the batch");
            }
            client.send(batch);
        }
        List<PartitionEvent> events = read("0", 101, EventPosition.earliest());
        EventData single = events.get(0).getData();
        same(single.getBodyAsString(), "single");
        same(single.getProperties(), Map.of("text", "ü", "number", 7, "long", 1L << 40, "flag", true));
        same(Arrays.asList(single.getContentType(), single.getMessageId(), single.getCorrelationId()),
            Arrays.asList("text/plain", id.toString(), "correlation"));
        for (int i = 0; i < 100; i++) {
            EventData event = events.get(i + 1).getData();
            same(event.getBodyAsString(), "batch " + i);
            same(event.getSequenceNumber(), i + 1L);
        }
        proved("single events and batches come back in order, with their properties, numbered from 0");
    }

    private static void largeBatch() {
        int count;
        try (EventHubProducerClient client = producer()) {
            EventDataBatch batch = client.createBatch(new CreateBatchOptions().setPartitionId("1"));
            while (batch.tryAdd(new EventData(filled(batch.getCount())))) {
                continue;
            }
            count = batch.getCount();
            client.send(batch);
        }
        List<PartitionEvent> events = read("1", count, EventPosition.earliest());
        for (int i = 0; i < count; i++) {
            check(Arrays.equals(events.get(i).getData().getBody(), filled(i)), "event " + i + " as sent");
        }
        proved("a batch as large as may be, " + count + " events, comes back whole");
    }

    private static byte[] filled(int value) {
        byte[] body = new byte[50_000];
        Arrays.fill(body, (byte) value);
        return body;
    }

    private static void keys() {
        String mark = UUID.randomUUID().toString();
        try (EventHubProducerClient client = producer()) {
            for (Map.Entry<String, String> entry : KEYS.entrySet()) {
                String partition = entry.getValue();
                long last = client.getPartitionProperties(partition).getLastEnqueuedSequenceNumber();
                client.send(List.of(new EventData(mark)), new SendOptions().setPartitionKey(entry.getKey()));
                EventData event = read(partition, 1, EventPosition.fromSequenceNumber(last)).get(0).getData();
                same(event.getBodyAsString(), mark);
                same(event.getPartitionKey(), entry.getKey());
            }
        }
        proved("partition keys choose Azure's partitions and come back");
    }

    private static void positions() {
        long last;
        try (EventHubProducerClient client = producer()) {
            for (int i = 0; i < 10; i++) {
                client.send(List.of(new EventData("position " + i)), new SendOptions().setPartitionId("2"));
            }
            last = client.getPartitionProperties("2").getLastEnqueuedSequenceNumber();
        }
        EventData middle = read("2", 1, EventPosition.fromSequenceNumber(last - 5, true)).get(0).getData();
        same(middle.getSequenceNumber(), last - 5);
        same(first(EventPosition.fromSequenceNumber(last - 5)), last - 4);
        same(first(EventPosition.fromOffsetString(middle.getOffsetString())), last - 4);
        check(first(EventPosition.fromEnqueuedTime(middle.getEnqueuedTime().minusMillis(1))) <= last - 5, "from a time");
        same(first(EventPosition.fromEnqueuedTime(Instant.EPOCH)), 0L);
        same(first(EventPosition.earliest()), 0L);
        proved("reading starts at the earliest, an offset, a sequence number and a time");
    }

    /** What is at the edges of an event. Footers are left out: the library cannot read those that it writes. */
    private static void unusual() {
        long last;
        EventData full = new EventData("body");
        full.getRawAmqpMessage().getDeliveryAnnotations().put("hop", 1);
        full.getRawAmqpMessage().getMessageAnnotations().put("x-ours", "kept");
        try (EventHubProducerClient client = producer()) {
            last = client.getPartitionProperties("2").getLastEnqueuedSequenceNumber();
            EventDataBatch batch = client.createBatch(new CreateBatchOptions().setPartitionId("2"));
            for (EventData event : List.of(new EventData(new byte[0]), full, new EventData("after"))) {
                check(batch.tryAdd(event), "room in the batch");
            }
            client.send(batch);
        }
        List<PartitionEvent> events = read("2", 3, EventPosition.fromSequenceNumber(last));
        same(events.get(0).getData().getBody().length, 0);
        EventData found = events.get(1).getData();
        same(found.getBodyAsString(), "body");
        same(found.getRawAmqpMessage().getMessageAnnotations().get("x-ours"), "kept");
        same(events.get(2).getData().getBodyAsString(), "after");
        proved("an empty body and annotations of both kinds are taken, and come back as sent");
    }

    /** The library has no body but data; a described value can be a property. */
    private static void described() {
        long last;
        EventData event = new EventData("beside described values");
        event.getProperties().put("described", new UnknownDescribedType(5, "value"));
        event.getProperties().put("after", "text");
        try (EventHubProducerClient client = producer()) {
            last = client.getPartitionProperties("2").getLastEnqueuedSequenceNumber();
            client.send(List.of(event, new EventData()), new SendOptions().setPartitionId("2"));
        }
        List<PartitionEvent> events = read("2", 2, EventPosition.fromSequenceNumber(last));
        Map<String, Object> found = events.get(0).getData().getProperties();
        DescribedType value = (DescribedType) found.get("described");
        same(Arrays.asList(value.getDescriptor(), value.getDescribed(), found.get("after")), Arrays.asList(5, "value", "text"));
        same(events.get(1).getData().getBody().length, 0);
        proved("a described value with an int for its descriptor comes back, and an event that was given no body");
    }

    private static Long first(EventPosition position) {
        return read("2", 1, position).get(0).getData().getSequenceNumber();
    }

    /** Subscription reads a partition in the background. */
    private static final class Subscription implements AutoCloseable {
        final BlockingQueue<PartitionEvent> events = new LinkedBlockingQueue<>();
        final BlockingQueue<Throwable> errors = new LinkedBlockingQueue<>();
        private final EventHubConsumerAsyncClient client;

        Subscription(ReceiveOptions options, EventPosition position, String partition) {
            client = builder(LISTENER, "readers").buildAsyncConsumerClient();
            client.receiveFromPartition(partition, position, options).subscribe(events::add, errors::add);
        }

        PartitionEvent next() throws InterruptedException {
            return Objects.requireNonNull(events.poll(LIMIT.toSeconds(), TimeUnit.SECONDS), "no event");
        }

        void fails(String part) throws InterruptedException {
            Throwable error = Objects.requireNonNull(errors.poll(LIMIT.toSeconds(), TimeUnit.SECONDS), "no error: " + part);
            check(String.valueOf(error.getMessage()).contains(part), part + " in " + error.getMessage());
        }

        @Override
        public void close() {
            client.close();
        }
    }

    private static void ownerLevels() throws InterruptedException {
        try (Subscription first = owner(1L)) {
            first.next();
            try (Subscription second = owner(2L)) {
                second.next();
                first.fails("with higher epoch of '2' is created");
                proved("a higher owner level takes over, and the reader it replaces is told why");
                try (Subscription third = owner(0L); Subscription fourth = owner(null)) {
                    third.fails("with a higher epoch '2' already exists");
                    fourth.fails("non-epoch receiver is not allowed");
                }
                proved("a lower owner level and a reader without one are refused");
            }
        }
        try (Subscription later = owner(null)) {
            later.next();
        }
        proved("once the owner is gone a reader without owner level is let in");
    }

    private static Subscription owner(Long level) {
        ReceiveOptions options = new ReceiveOptions();
        if (level != null) {
            options.setOwnerLevel(level);
        }
        return new Subscription(options, EventPosition.earliest(), "0");
    }

    private static void information() throws InterruptedException {
        try (EventHubProducerClient client = producer()) {
            EventHubProperties hub = client.getEventHubProperties();
            same(hub.getName(), HUB);
            same(hub.getPartitionIds().stream().toList(), List.of("0", "1", "2", "3"));
            check(hub.getCreatedAt().isAfter(Instant.now().minusSeconds(3600)), "created " + hub.getCreatedAt());
            PartitionProperties partition = client.getPartitionProperties("0");
            long last = partition.getLastEnqueuedSequenceNumber();
            EventData tip = read("0", 1, EventPosition.fromSequenceNumber(last, true)).get(0).getData();
            same(partition.getBeginningSequenceNumber(), 0L);
            same(partition.getLastEnqueuedOffset(), tip.getOffsetString());
            same(partition.getLastEnqueuedTime(), tip.getEnqueuedTime());
            same(partition.isEmpty(), false);
            ReceiveOptions tracking = new ReceiveOptions().setTrackLastEnqueuedEventProperties(true);
            try (Subscription reader = new Subscription(tracking, EventPosition.earliest(), "0")) {
                PartitionEvent event = reader.next();
                same(event.getLastEnqueuedEventProperties().getSequenceNumber(), last);
                same(event.getLastEnqueuedEventProperties().getEnqueuedTime(), tip.getEnqueuedTime());
            }
        }
        proved("runtime information of the hub, a partition, and beside each delivery");
    }

    private static void access() throws GeneralSecurityException {
        fails(LISTENER, "'Send' claim(s) are required");
        fails(CONNECTION.replaceAll("SharedAccessKey=[^;]*", "SharedAccessKey=wrong"), "");
        fails(CONNECTION.replace("EntityPath=" + HUB, "EntityPath=no-such-hub"), "could not be found");
        proved("no right, a wrong key and an unknown hub are refused");
        String signed = signed(CONNECTION);
        try (EventHubProducerClient client = builder(signed, "$Default").buildProducerClient()) {
            client.send(List.of(new EventData("by a signature")));
        }
        for (Map.Entry<String, String> broken : Map.of("&sig=", "&sig=x", "sr=", "sr=%zz", "&skn=", "&other=").entrySet()) {
            try (EventHubProducerClient client = builder(signed.replace(broken.getKey(), broken.getValue()), "$Default").buildProducerClient()) {
                client.send(List.of(new EventData("by a malformed signature")));
            } catch (AmqpException problem) {
                same(problem.getErrorCondition(), AmqpErrorCondition.UNAUTHORIZED_ACCESS);
                continue;
            }
            throw new AssertionError("it was let in without " + broken.getKey());
        }
        proved("a signature made by hand is taken; a malformed one is unauthorized, whatever is wrong with it");
    }

    /**
     * What is put at $cbs is good; each question at $management brings a token of its own. The library takes a key or a
     * signature once and for all, so that a credential of ours gives it signatures, and a wrong one. It names the yard
     * by its host alone: that is where Azure's ports are.
     */
    private static void rotation() throws GeneralSecurityException {
        if (CONNECTION.contains("UseDevelopmentEmulator")) {
            return;
        }
        String host = CONNECTION.replaceAll(".*Endpoint=sb://([^;/:]*).*", "$1");
        String right = signed(CONNECTION).replaceAll(".*(SharedAccessSignature sr=[^;]*).*", "$1");
        AtomicReference<String> token = new AtomicReference<>(right);
        TokenCredential credential = context -> Mono.just(new AccessToken(token.get(), OffsetDateTime.now().plusMinutes(10)));
        try (EventHubProducerClient client = configured(new EventHubClientBuilder().credential(host, HUB, credential)).buildProducerClient()) {
            same(client.getEventHubProperties().getName(), HUB);
            token.set(right.replace("&sig=", "&sig=d3Jvbmc%3D"));
            try {
                client.getEventHubProperties();
            } catch (AmqpException problem) {
                same(problem.getErrorCondition(), AmqpErrorCondition.UNAUTHORIZED_ACCESS);
                token.set(right);
            }
            same(token.get(), right);
            same(client.getEventHubProperties().getName(), HUB);
        }
        proved("a question that brings a token signed with a wrong key is refused, and the next with a right one answered");
    }

    /** A connection string with a signature made by hand in place of the key. */
    private static String signed(String connection) throws GeneralSecurityException {
        String name = connection.replaceAll(".*SharedAccessKeyName=([^;]*).*", "$1");
        String key = connection.replaceAll(".*SharedAccessKey=([^;]*).*", "$1");
        String endpoint = connection.replaceAll(".*Endpoint=([^;]*).*", "$1");
        String resource = URLEncoder.encode(endpoint + "/" + HUB, StandardCharsets.UTF_8);
        long until = Instant.now().plusSeconds(600).getEpochSecond();
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        String text = Base64.getEncoder().encodeToString(mac.doFinal((resource + "\n" + until).getBytes(StandardCharsets.UTF_8)));
        String token = "SharedAccessSignature sr=" + resource + "&sig=" + URLEncoder.encode(text, StandardCharsets.UTF_8)
            + "&se=" + until + "&skn=" + name;
        return connection.replaceAll("SharedAccessKeyName=[^;]*;SharedAccessKey=[^;]*", Matcher.quoteReplacement("SharedAccessSignature=" + token));
    }

    private static void fails(String connection, String part) {
        try (EventHubProducerClient client = builder(connection, "$Default").buildProducerClient()) {
            client.send(List.of(new EventData("without right")));
        } catch (AmqpException problem) {
            check(problem.getMessage().contains(part), part + " in " + problem.getMessage());
            return;
        }
        throw new AssertionError("it was let in, want: " + part);
    }

    private static void proved(String text) {
        System.out.println("proved: " + text);
    }

    private static void same(Object got, Object want) {
        check(Objects.equals(got, want), "got " + got + ", want " + want);
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
