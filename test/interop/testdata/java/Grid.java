import com.azure.core.credential.AccessToken;
import com.azure.core.credential.AzureKeyCredential;
import com.azure.core.credential.AzureSasCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.models.CloudEvent;
import com.azure.core.models.CloudEventDataFormat;
import com.azure.core.util.BinaryData;
import com.azure.messaging.eventgrid.EventGridEvent;
import com.azure.messaging.eventgrid.EventGridPublisherClient;
import com.azure.messaging.eventgrid.EventGridPublisherClientBuilder;
import com.azure.messaging.eventgrid.systemevents.SubscriptionValidationEventData;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import reactor.core.publisher.Mono;

/** The official Event Grid library for Java: it publishes every schema, and reads what a webhook gets. */
public final class Grid {
    private static final String TOKEN = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL2V2ZW50Z3JpZC5henVyZS5uZXQifQ.";

    public static void main(String[] arguments) {
        try {
            gridEvents();
            cloudEvents();
            customEvents();
            refusals();
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0); // the library's threads would keep us
    }

    /** A topic as the script was told of it. */
    private record Topic(String name, String endpoint, String key) {
        static Topic of(String name) {
            String[] parts = System.getenv("YARD_TOPIC_" + name).split(" ");
            return new Topic(name, parts[0], parts[1]);
        }

        Map<String, EventGridPublisherClientBuilder> builders() {
            OffsetDateTime soon = OffsetDateTime.now().plusHours(1);
            String signature = EventGridPublisherClient.generateSas(endpoint, new AzureKeyCredential(key), soon);
            return Map.of(
                "key", new EventGridPublisherClientBuilder().endpoint(endpoint).credential(new AzureKeyCredential(key)),
                "signature", new EventGridPublisherClientBuilder().endpoint(endpoint).credential(new AzureSasCredential(signature)),
                "token", new EventGridPublisherClientBuilder().endpoint(endpoint).credential(request -> Mono.just(new AccessToken(TOKEN, soon))));
        }
    }

    private static void gridEvents() throws Exception {
        Topic topic = Topic.of("grid");
        BlockingQueue<String> box = webhook(topic, "{}");
        Map<String, EventGridEvent> sent = new HashMap<>();
        for (EventGridPublisherClientBuilder builder : topic.builders().values()) {
            EventGridEvent event = new EventGridEvent("/shops/1", "order.placed", BinaryData.fromObject(Map.of("total", 42, "text", "größe 日本")), "1.0");
            builder.buildEventGridEventPublisherClient().sendEvent(event);
            sent.put(event.getId(), event);
        }
        while (!sent.isEmpty()) {
            EventGridEvent back = EventGridEvent.fromString(take(box)).get(0);
            EventGridEvent event = sent.remove(back.getId());
            same(back.getSubject() + back.getEventType() + back.getDataVersion(), event.getSubject() + event.getEventType() + event.getDataVersion(), "the event");
            same(back.getData().toObject(Map.class).get("text"), "größe 日本", "the data");
            same(back.getEventTime().toInstant(), event.getEventTime().toInstant(), "the time");
        }
        proved("Event Grid's schema by key, signature and token; the library reads it back");
    }

    private static void cloudEvents() throws Exception {
        Topic topic = Topic.of("clouds");
        BlockingQueue<String> box = webhook(topic, "{\"maxEventsPerBatch\":10}");
        Map<String, CloudEvent> sent = new HashMap<>();
        for (EventGridPublisherClientBuilder builder : topic.builders().values()) {
            List<CloudEvent> events = List.of(
                new CloudEvent("/source", "order.placed", BinaryData.fromObject(Map.of("total", 42)), CloudEventDataFormat.JSON, "application/json")
                    .addExtensionAttribute("mine", "kept").setSubject("a"),
                new CloudEvent("/source", "order.photo", BinaryData.fromBytes(new byte[] {-1, 0, 1}), CloudEventDataFormat.BYTES, "image/png"));
            builder.buildCloudEventPublisherClient().sendEvents(events);
            events.forEach(event -> sent.put(event.getId(), event));
        }
        while (!sent.isEmpty()) {
            for (CloudEvent back : CloudEvent.fromString(take(box))) {
                CloudEvent event = sent.remove(back.getId());
                same(back.getType() + back.getSubject() + back.getDataContentType(), event.getType() + event.getSubject() + event.getDataContentType(), "the event");
                same(String.valueOf(back.getExtensionAttributes()), String.valueOf(event.getExtensionAttributes()), "attributes of one's own");
                same(Base64.getEncoder().encodeToString(back.getData().toBytes()), Base64.getEncoder().encodeToString(event.getData().toBytes()), "the data");
            }
        }
        proved("CloudEvents with objects and bytes, in batches; the library reads them back");
    }

    private static void customEvents() throws Exception {
        Topic topic = Topic.of("custom");
        BlockingQueue<String> box = webhook(topic, "{}");
        topic.builders().get("key").buildCustomEventPublisherClient().sendEvent(BinaryData.fromObject(Map.of("meter", 7)));
        same(EventGridEvent.fromString(take(box)).get(0).getData().toString(), "{\"meter\":7}", "the data");
        proved("a schema of one's own arrives in Event Grid's envelope");
    }

    private static void refusals() {
        Topic topic = Topic.of("grid");
        EventGridEvent event = new EventGridEvent("s", "t", BinaryData.fromObject(1), "1");
        AzureKeyCredential wrong = new AzureKeyCredential(Topic.of("clouds").key);
        try {
            new EventGridPublisherClientBuilder().endpoint(topic.endpoint).credential(wrong).buildEventGridEventPublisherClient().sendEvent(event);
            throw new AssertionError("the key of another topic was let in");
        } catch (HttpResponseException refused) {
            same(refused.getResponse().getStatusCode(), 401, "the key of another topic");
        }
        EventGridEvent large = new EventGridEvent("s", "t", BinaryData.fromObject("x".repeat((1 << 20) + 4096)), "1");
        try {
            topic.builders().get("key").buildEventGridEventPublisherClient().sendEvent(large);
            throw new AssertionError("too much was taken");
        } catch (HttpResponseException refused) {
            same(refused.getResponse().getStatusCode(), 413, "too much");
        }
        proved("refusals have their statuses");
    }

    /** A webhook that is subscribed to a topic. */
    private static BlockingQueue<String> webhook(Topic topic, String more) throws Exception {
        BlockingQueue<String> box = new LinkedBlockingQueue<>();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> receive(exchange, box::add));
        server.start();
        String settings = more.replaceFirst("}$", (more.equals("{}") ? "" : ",") + "\"endpointUrl\":\"http://127.0.0.1:" + server.getAddress().getPort() + "/\"}");
        String body = "{\"properties\":{\"destination\":{\"endpointType\":\"WebHook\",\"properties\":" + settings + "}}}";
        String login = Base64.getEncoder().encodeToString(System.getenv("YARD_LOGIN").getBytes(StandardCharsets.UTF_8));
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("YARD_SERVER") + "/topics/" + topic.name + "/eventSubscriptions/java"))
            .PUT(HttpRequest.BodyPublishers.ofString(body)).header("Authorization", "Basic " + login).header("Content-Type", "application/json").build();
        HttpResponse<String> made = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        same(made.statusCode(), 201, "subscribing: " + made.body());
        return box;
    }

    private static void receive(HttpExchange exchange, Consumer<String> keep) throws IOException {
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        byte[] answer = new byte[0];
        if (exchange.getRequestMethod().equals("OPTIONS")) {
            exchange.getResponseHeaders().set("WebHook-Allowed-Origin", exchange.getRequestHeaders().getFirst("WebHook-Request-Origin"));
        } else if ("SubscriptionValidation".equals(exchange.getRequestHeaders().getFirst("aeg-event-type"))) {
            SubscriptionValidationEventData asked = EventGridEvent.fromString(body).get(0).getData().toObject(SubscriptionValidationEventData.class);
            answer = ("{\"validationResponse\":\"" + asked.getValidationCode() + "\"}").getBytes(StandardCharsets.UTF_8);
        } else {
            keep.accept(body);
        }
        exchange.sendResponseHeaders(200, answer.length == 0 ? -1 : answer.length);
        exchange.getResponseBody().write(answer);
        exchange.close();
    }

    private static String take(BlockingQueue<String> box) throws InterruptedException {
        String body = box.poll(60, TimeUnit.SECONDS);
        if (body == null) {
            throw new AssertionError("waited in vain for an event");
        }
        return body;
    }

    private static void same(Object got, Object want, String what) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(what + ": got " + got + ", want " + want);
        }
    }

    private static void proved(String text) {
        System.out.println("proved: " + text);
    }
}
