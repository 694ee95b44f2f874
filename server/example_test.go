package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/eventyard/eventyard/server"
)

// A yard inside your own program, for as long as a context lives.
func Example() {
	dir, err := os.MkdirTemp("", "yard")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	yard, err := server.New(server.Config{
		DataDir: dir,
		HTTP:    "127.0.0.1:0", // any free port
		AMQP:    server.Off, AMQPS: server.Off, HTTPS: server.Off, Kafka: server.Off, Kafkas: server.Off,
		Hubs: []server.Hub{{Name: "orders", Partitions: 4}},
		Log:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- yard.Run(ctx) }()
	select {
	case err := <-ended: // a port is in use, say
		panic(err)
	case <-yard.Started():
	}

	request, err := http.NewRequest("POST", yard.Addresses()["http"]+"/orders/messages", strings.NewReader("hello"))
	if err != nil {
		panic(err)
	}
	request.SetBasicAuth("RootManageSharedAccessKey", "SAS_KEY_VALUE") // valid on loopback
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(response.Status)

	stop()
	fmt.Println(<-ended)
	// Output:
	// 201 Created
	// <nil>
}
