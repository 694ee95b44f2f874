package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// language is one in which a page says how a program connects.
type language struct{ word, name string }

// languages are those that can be chosen, the first by default.
var languages = []language{{"python", "Python"}, {"javascript", "JavaScript"}, {"java", "Java"}, {"dotnet", ".NET"}, {"go", "Go"}, {"curl", "curl"}}

// languageOf is the one that is asked for.
func languageOf(word string) language {
	return languages[max(slices.IndexFunc(languages, func(l language) bool { return l.word == word }), 0)]
}

// snippet is a program in a few lines that sends an event to a hub, or reads one, whichever its policy allows. It
// finds its connection string in the environment, as YARD, so that none is in it; curl takes a policy and its
// key, as YARD_USER, and the address of the yard.
func snippet(l language, hub string, sends bool, address string) string {
	name, path := strconv.Quote(hub), url.PathEscape(hub)
	switch {
	case l.word == "python" && sends:
		return fmt.Sprintf(`import os
from azure.eventhub import EventData, EventHubProducerClient
with EventHubProducerClient.from_connection_string(os.environ["YARD"], eventhub_name=%s) as producer:
    producer.send_batch([EventData("hello")], partition_key="customer-42")`, name)
	case l.word == "python":
		return fmt.Sprintf(`import os
from azure.eventhub import EventHubConsumerClient
with EventHubConsumerClient.from_connection_string(os.environ["YARD"], "$Default", eventhub_name=%s) as consumer:
    consumer.receive(on_event=lambda partition, event: print(event.body_as_str()), starting_position="-1")`, name)
	case l.word == "javascript" && sends:
		return fmt.Sprintf(`const { EventHubProducerClient } = require("@azure/event-hubs");
const producer = new EventHubProducerClient(process.env.YARD, %s);
await producer.sendBatch([{ body: "hello" }], { partitionKey: "customer-42" });`, name)
	case l.word == "javascript":
		return fmt.Sprintf(`const { EventHubConsumerClient, earliestEventPosition } = require("@azure/event-hubs");
const consumer = new EventHubConsumerClient("$Default", process.env.YARD, %s);
consumer.subscribe({
  processEvents: async events => { for (const e of events) console.log(e.body); },
  processError: async error => console.error(error),
}, { startPosition: earliestEventPosition });`, name)
	case l.word == "java" && sends:
		return fmt.Sprintf(`try (EventHubProducerClient producer = new EventHubClientBuilder()
        .connectionString(System.getenv("YARD"), %s).buildProducerClient()) {
    producer.send(List.of(new EventData("hello")), new SendOptions().setPartitionKey("customer-42"));
}`, name)
	case l.word == "java":
		return fmt.Sprintf(`try (EventHubConsumerClient consumer = new EventHubClientBuilder()
        .connectionString(System.getenv("YARD"), %s).consumerGroup("$Default").buildConsumerClient()) {
    for (PartitionEvent e : consumer.receiveFromPartition("0", 10, EventPosition.earliest(), Duration.ofSeconds(2)))
        System.out.println(e.getData().getBodyAsString());
}`, name)
	case l.word == "dotnet" && sends:
		return fmt.Sprintf(`await using var producer = new EventHubProducerClient(Environment.GetEnvironmentVariable("YARD"), %s);
await producer.SendAsync(new[] { new EventData("hello") }, new SendEventOptions { PartitionKey = "customer-42" });`, name)
	case l.word == "dotnet":
		return fmt.Sprintf(`await using var consumer = new EventHubConsumerClient("$Default", Environment.GetEnvironmentVariable("YARD"), %s);
await foreach (PartitionEvent e in consumer.ReadEventsAsync(startReadingAtEarliestEvent: true))
    Console.WriteLine(e.Data.EventBody);`, name)
	case l.word == "go" && sends:
		return fmt.Sprintf(`client, err := hub.Dial(ctx, os.Getenv("YARD"), hub.Config{})
err = client.Hub(%s).Send(ctx, event.Event{Key: "customer-42", Body: []byte("hello")})`, name)
	case l.word == "go":
		return fmt.Sprintf(`client, err := hub.Dial(ctx, os.Getenv("YARD"), hub.Config{})
for ev, err := range client.Hub(%s).Read(ctx, hub.ReadConfig{Partition: "0", From: hub.Earliest}) {
	fmt.Println(string(ev.Body), err)
}`, name)
	case sends:
		return fmt.Sprintf("curl -u \"$YARD_USER\" -X POST %s -d hello", shell(address+"/"+path+"/messages"))
	}
	return fmt.Sprintf("curl -u \"$YARD_USER\" %s", shell(address+"/api/v1/hubs/"+path+"/events?from=earliest"))
}
