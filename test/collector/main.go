// Command collector is the OpenTelemetry Collector, as far as a test needs it: its own receiver of OTLP over HTTP, from
// its own module, and behind it nothing but what posts the spans on as they were understood. The tests in
// test/traces put it between the yard and themselves. It is a module of its own, so that users of the library
// carry nothing of it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		log.Fatal("usage: collector URL, to which it posts the spans that it receives")
	}
	if err := collect(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// collect receives spans, says where, and posts them on until ctx ends.
func collect(ctx context.Context, to string) error {
	next, err := consumer.NewTraces(func(ctx context.Context, spans ptrace.Traces) error { return post(ctx, to, spans) })
	if err != nil {
		return err
	}
	collecting, address, err := start(ctx, next)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", address)
	<-ctx.Done()
	return collecting.Shutdown(context.WithoutCancel(ctx))
}

// start starts the receiver with settings as a file of the Collector has them. It does not say which port it has
// where any will do, so that a free one is looked for, which another may take first.
func start(ctx context.Context, next consumer.Traces) (receiver.Traces, string, error) {
	factory := otlpreceiver.NewFactory()
	for attempt := 1; ; attempt++ {
		address, err := freeAddress()
		if err != nil {
			return nil, "", err
		}
		settings := factory.CreateDefaultConfig()
		err = confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}).Unmarshal(settings)
		if err != nil {
			return nil, "", err
		}
		collecting, err := factory.CreateTraces(ctx, receiver.Settings{
			ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		}, settings, next)
		if err == nil {
			err = collecting.Start(ctx, componenttest.NewNopHost())
		}
		if err == nil || attempt == 5 {
			return collecting, address, err
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// post hands spans on, before whoever sent them is answered.
func post(ctx context.Context, to string, spans ptrace.Traces) error {
	body, err := ptraceotlp.NewExportRequestFromTraces(spans).MarshalProto()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("post spans on: %s", answer.Status)
	}
	return nil
}
