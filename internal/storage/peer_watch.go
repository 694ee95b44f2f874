package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/embedded"
)

// ErrStopped: the server inside this process stores nothing any more until the process is started again.
var ErrStopped = errors.New("the server inside has stopped storing")

const (
	// watchEvery is how often the server inside is looked at.
	watchEvery = time.Second
	// roomToStart is how much a disk that was full has to have free for the server to be started again: with
	// less it would stop at once.
	roomToStart = 64 << 20
)

// stoppedError says what is to be done where a server has stopped.
func stoppedError(status embedded.Status) error {
	return fmt.Errorf("%w at %s, as its disk was full or failed (%s): make room there; the node ends when there is, and stores again once it is started", ErrStopped, status.Name, status.Stopped)
}

// watch waits until the server has stopped and is to be started again, and gives ErrStopped; else it ends with
// ctx. It says at once that the server has stopped.
func (in *inside) watch(ctx context.Context, log *slog.Logger) error {
	for said := false; sleep.About(ctx, watchEvery) == nil; {
		if err := in.restart(); err != nil {
			return err
		}
		if status := in.server.Status(); status.Stopped != "" && !said {
			said = true
			log.Error("the server inside stores nothing, and the other peers go on", "error", stoppedError(status))
		}
	}
	return nil
}

// restart gives ErrStopped where the server has stopped and there is room for it to start. While its disk is
// full that would be of no use, and the clients of this node are served by the servers of the other peers.
func (in *inside) restart() error {
	status := in.server.Status()
	if status.Stopped == "" {
		return nil
	}
	if free, _, err := Space(in.folder); err == nil && free < roomToStart {
		return nil
	}
	return stoppedError(status)
}
