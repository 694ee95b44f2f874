package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/api/frame"
)

// takeBackup gives a backup of the whole yard, one at a time: each reads all that there is. What goes
// wrong before its first byte is a problem like others. Behind that the backup itself says why it ends,
// and the connection is cut, so that no client takes the part for the whole.
func (d *Handler) takeBackup(w http.ResponseWriter, r *http.Request) error {
	if !d.backingUp.TryLock() {
		return &frame.Refusal{
			Status: http.StatusConflict, Code: "backup-under-way", Title: "A backup is being taken",
			Detail: "another backup is being taken, and each reads all that the yard keeps", Next: "try again when it is done",
		}
	}
	defer d.backingUp.Unlock()
	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		return err
	}
	defer cancel()
	out := &laterStream{handler: d, w: w}
	err = d.cfg.Backup(ctx, out)
	switch {
	case err != nil && out.stream == nil:
		return err
	case err != nil:
		d.cfg.Log.Warn("a backup broke off", "error", err)
		_ = out.stream.flush()
		panic(http.ErrAbortHandler)
	}
	_ = out.stream.flush() // who is gone needs no rest
	return nil
}

// laterStream is a stream that begins with its first byte.
type laterStream struct {
	handler *Handler
	w       http.ResponseWriter
	stream  *stream
}

func (l *laterStream) Write(p []byte) (int, error) {
	if l.stream == nil {
		l.stream = newStream(l.w, "application/octet-stream", l.handler.cfg.WriteTimeout)
	}
	return deadlineWriter{l.stream}.Write(p)
}
