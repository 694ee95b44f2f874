package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/eventyard/eventyard/test/parts"
)

// yard is the real program with listeners for Kafka and AMQP. Its default is fsync.
func (b *bench) yard(stores durability) *process {
	sync := map[durability]string{page: "os", fsync: "always"}[stores]
	return &process{
		is: about{name: "yard, sync `" + sync + "`", kind: "yard", stores: stores, ours: true},
		prepare: func(_ context.Context, dir string, l *launch) error {
			program := filepath.Join(b.folder, "eventyard")
			if _, err := os.Stat(program); err != nil {
				if err := parts.BuildEventyard(program, false); err != nil {
					return err
				}
			}
			l.ports = map[string]string{"kafka": "9092", "kafkas": "9093", "amqp": "5672", "http": "8080"}
			l.args = []string{program, "serve", "--data", filepath.Join(dir, "data"), "--sync", sync,
				"--kafka", l.address("kafka"), "--kafkas", l.address("kafkas"), "--amqp", l.address("amqp"), "--http", l.address("http"),
				"--amqps", "off", "--https", "off",
				// A client with TLS would else be led to the name that it asks for, which is that of the certificate alone.
				"--kafkas-advertise", l.address("kafkas"), "--tls-cert-file", b.certificate("cert.pem"), "--tls-key-file", b.certificate("key.pem")}
			return nil
		},
	}
}

// thrownAway is the ceiling of Kafka's protocol.
func (b *bench) thrownAway() *process {
	return &process{
		is: about{name: "a server that throws away", kind: "sink", stores: none},
		prepare: func(_ context.Context, _ string, l *launch) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			l.ports = map[string]string{"kafka": "9092", "kafkas": "9093"}
			l.args = []string{"env", sinkCommand + "=" + l.address("kafka"), sinkTLS + "=" + l.address("kafkas"),
				sinkKeys + "=" + b.certificate("keys.pem"), self}
			return nil
		},
	}
}
