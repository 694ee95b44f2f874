package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// askServers has each server of a cluster say how it is set. Only the system account may ask.
	askServers = "$SYS.REQ.SERVER.PING.VARZ"
	// quiet is how long another server may take to answer after the last one, where none knows of a cluster.
	quiet = 500 * time.Millisecond
)

// askSystem asks all servers through the system account how they are set. Those of a cluster that has JetStream know
// how many they are, and so many are waited for, for a third of a check's time. With fewer, it gives those and an error.
func (c Config) askSystem(ctx context.Context) (all []Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime/3)
	defer cancel()
	c.User, c.Password, c.Token, c.NKeyFile, c.CredsFile = c.SystemUser, c.SystemPassword, "", "", c.SystemCredsFile
	options, err := c.options("system")
	if err != nil {
		return nil, err
	}
	options.AllowReconnect = false
	conn, err := options.Connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answers, err := conn.SubscribeSync(nats.NewInbox())
	if err != nil {
		return nil, err
	}
	if err := conn.PublishRequest(askServers, answers.Subject, nil); err != nil {
		return nil, err
	}
	size, storing := 0, 0 // how many have JetStream, as they say, and how many of those have answered
	for waiting := ctx; ; {
		message, err := answers.NextMsgWithContext(waiting)
		switch {
		case err != nil && storing < size:
			return all, fmt.Errorf("only %d of %d have answered", storing, size)
		case err != nil && len(all) > 0:
			return all, nil // those that there are
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders):
			return nil, errors.New("no server answers: is that a user of the system account?")
		case err != nil:
			return nil, err
		}
		var found struct {
			Data varz `json:"data"`
		}
		if err := json.Unmarshal(message.Data, &found); err != nil || found.Data.Name == "" {
			return nil, fmt.Errorf("the answer cannot be read: %.100q", message.Data)
		}
		all = append(all, found.Data.server())
		size = max(size, found.Data.JetStream.Meta.Size)
		if found.Data.JetStream.Config != nil {
			storing++
		}
		if size > 0 && storing >= size {
			return all, nil
		}
		if waiting = ctx; size == 0 {
			var end context.CancelFunc
			waiting, end = context.WithTimeout(ctx, quiet)
			defer end()
		}
	}
}

// varz is what a server says of itself, as far as it is used here.
type varz struct {
	Name       string `json:"server_name"`
	Version    string `json:"version"`
	MaxPayload int64  `json:"max_payload"`
	JetStream  struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
		Meta struct {
			Size int `json:"cluster_size"`
		} `json:"meta"`
	} `json:"jetstream"`
}

func (v varz) server() Server {
	s := Server{Name: v.Name, Version: v.Version, MaxPayload: v.MaxPayload}
	if v.JetStream.Config != nil {
		s.Sync, s.SyncKnown = v.JetStream.Config.SyncAlways, true
	}
	return s
}
