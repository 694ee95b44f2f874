package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/test/upgrade"
)

// newKey writes the secret key of a yard on servers, whose nodes make none.
func newKey(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(data, upgrade.SecretKey), []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600)
}

// serve runs a NATS server on what a data folder has of one.
func serve(data string) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "n0", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: 8 << 20,
		JetStream: true, StoreDir: filepath.Join(data, upgrade.Servers), SyncAlways: true, JetStreamMaxStore: 1 << 40,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return nil, errors.New("the NATS server does not start to listen")
	}
	return s, nil
}

// storeAgain has old entries be stored again, values and deletions, as a node does beyond 250,000 gaps. No node runs.
func storeAgain(ctx context.Context, data string) error {
	servers, err := serve(data)
	if err != nil {
		return err
	}
	defer servers.WaitForShutdown()
	defer servers.Shutdown()
	conn, err := nats.Connect(servers.ClientURL())
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := entries.New(conn, entries.Config{Yard: upgrade.YardName, Replicas: 1, MaxGaps: 8})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 2)
	defer func() {
		cancel()
		_, _ = <-ended, <-ended
	}()
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- entries.Tidy(ctx, s) }()
	if err := s.Load(ctx); err != nil {
		return err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, entries.DefinitionsStream(upgrade.YardName))
	if err != nil {
		return err
	}
	was := stream.CachedInfo().State.LastSeq
	for { // nothing tells when it has happened
		info, err := stream.Info(ctx)
		if err != nil {
			return err
		}
		if info.State.FirstSeq > was/2 {
			fmt.Println("of definitions those before", info.State.FirstSeq, "were stored again, the last was", was)
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}
