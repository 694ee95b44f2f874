import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.EventProcessorClient;
import com.azure.messaging.eventhubs.EventProcessorClientBuilder;
import com.azure.messaging.eventhubs.checkpointstore.blob.BlobCheckpointStore;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.SendOptions;
import com.azure.storage.blob.BlobContainerAsyncClient;
import com.azure.storage.blob.BlobContainerClientBuilder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

/** The official processor for Java, with its checkpoints in the yard's own blobs. */
public final class Checkpoints {
    private static final Duration LIMIT = Duration.ofSeconds(90);
    private static final BlobContainerAsyncClient CONTAINER = new BlobContainerClientBuilder()
        .connectionString(System.getenv("YARD_BLOBS"))
        .containerName("java-" + UUID.randomUUID())
        .buildAsyncClient();

    public static void main(String[] arguments) {
        try {
            CONTAINER.create().block();
            List<String> early = send("early");
            round(early);
            proved("a processor reads everything and keeps checkpoints");
            List<String> fresh = send("fresh");
            Map<String, Integer> seen = round(fresh);
            if (!seen.keySet().equals(Set.copyOf(fresh)) || seen.values().stream().anyMatch(n -> n != 1)) {
                throw new AssertionError("it was given " + seen);
            }
            proved("a new processor resumes from the checkpoints: nothing lost, nothing twice");
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0); // the library's threads would keep us
    }

    private static List<String> send(String name) {
        List<String> bodies = new ArrayList<>();
        try (EventHubProducerClient producer = new EventHubClientBuilder()
            .connectionString(System.getenv("YARD_CONNECTION")).buildProducerClient()) {
            for (int i = 0; i < 40; i++) {
                String body = name + "-" + i;
                producer.send(List.of(new EventData(body)), new SendOptions().setPartitionId(String.valueOf(i % 4)));
                bodies.add(body);
            }
        }
        return bodies;
    }

    /** Runs a processor until it has seen all that is wanted, each with a checkpoint. */
    private static Map<String, Integer> round(List<String> want) throws InterruptedException {
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        EventProcessorClient processor = new EventProcessorClientBuilder()
            .connectionString(System.getenv("YARD_LISTENER"))
            .consumerGroup("readers")
            .checkpointStore(new BlobCheckpointStore(CONTAINER))
            .initialPartitionEventPosition(partition -> EventPosition.earliest())
            .loadBalancingUpdateInterval(Duration.ofSeconds(1))
            .processEvent(context -> {
                context.updateCheckpoint();
                seen.merge(context.getEventData().getBodyAsString(), 1, Integer::sum);
            })
            .processError(context -> System.out.println("told of " + context.getThrowable()))
            .buildEventProcessorClient();
        processor.start();
        try {
            await(() -> seen.keySet().containsAll(want));
        } finally {
            processor.stop();
        }
        return seen;
    }

    private static void await(BooleanSupplier ready) throws InterruptedException {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!ready.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("waited in vain");
            }
            Thread.sleep(50);
        }
    }

    private static void proved(String what) {
        System.out.println("proved: " + what);
    }
}
