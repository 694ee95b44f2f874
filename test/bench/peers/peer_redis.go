package main

import (
	"context"

	"github.com/eventyard/eventyard/test/parts"
)

// redis is Debian's Redis with its append-only file, which is left to the operating system or synced for each answer.
// All of it is in memory besides.
func (b *bench) redis(stores durability) *process {
	sync := map[durability]string{page: "no", fsync: "always"}[stores]
	return &process{
		is: about{name: "Redis streams, `appendfsync " + sync + "`", kind: "redis", stores: stores},
		prepare: func(_ context.Context, dir string, l *launch) error {
			if err := parts.Need("redis-server", "redis-server"); err != nil {
				return missing(err)
			}
			l.ports = map[string]string{"redis": "6379"}
			l.args = []string{"redis-server", "--bind", l.host, "--port", l.ports["redis"], "--dir", dir, "--save", "",
				"--appendonly", "yes", "--appendfsync", sync}
			return nil
		},
	}
}
