package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// nats is a NATS server with JetStream. Its default syncs every two minutes.
func (b *bench) nats(stores durability) *process {
	name := map[durability]string{page: "NATS JetStream, its default", fsync: "NATS JetStream, `sync_interval: always`"}[stores]
	return &process{
		is: about{name: name, kind: "nats", stores: stores},
		prepare: func(_ context.Context, dir string, l *launch) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			l.ports = map[string]string{"nats": "4222"}
			config := filepath.Join(dir, "nats.conf")
			text := fmt.Sprintf("listen: %q\njetstream { store_dir: %q", l.address("nats"), filepath.Join(dir, "data"))
			if stores == fsync {
				text += ", sync_interval: always"
			}
			l.args = []string{"env", natsCommand + "=" + config, self}
			return os.WriteFile(config, []byte(text+" }\n"), 0o600)
		},
	}
}

// serveNATS makes this process a NATS server until the context ends.
func serveNATS(ctx context.Context, config string) error {
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	options.NoSigs, options.NoLog = true, true
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("the NATS server does not get ready")
	}
	<-ctx.Done()
	return nil
}
