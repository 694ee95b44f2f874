package handler

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1: what a client is told of an error of storage holds no path of the machine, and the log has the whole.
func TestAnswersHoldNoPaths(t *testing.T) {
	const (
		file = "log/orders-5f1c/0/00000000000000000000.seg"
		path = "/var/lib/eventyard/" + file
	)
	causes := []error{
		&fs.PathError{Op: "write", Path: path, Err: errors.New("no space left on device")},
		fmt.Errorf("create %s: %w", file, &fs.PathError{Op: "open", Path: path, Err: errors.New("input/output error")}),
		errors.Join(errors.New("other"), &os.LinkError{Op: "rename", Old: path, New: path + ".new", Err: errors.New("no space left on device")}),
		&eventlog.CorruptError{Where: file + " at offset 7", Reason: "bad checksum", First: 3, Next: 7},
	}
	for _, kind := range []error{
		eventlog.ErrNoSpace, eventlog.ErrUncertain, eventlog.ErrFenced, eventlog.ErrUnavailable, eventlog.ErrClosed,
		meta.ErrNoSpace, meta.ErrUncertain, meta.ErrUnavailable, meta.ErrClosed,
	} {
		for _, cause := range causes {
			err := fmt.Errorf("append orders/0 at 7: %w", fmt.Errorf("%w: %w", kind, cause))
			var log bytes.Buffer
			code, text := (&peer{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}).explain(t.Context(), "Produce", err)
			testkit.That(t, code != codeUnknown, "%v has no code", err)
			testkit.That(t, strings.Contains(*text, kind.Error()), "%q says what happened, %v", *text, kind)
			testkit.That(t, !strings.Contains(*text, "/var/lib") && !strings.Contains(*text, ".seg") && !strings.Contains(*text, "log/"), "a client is told %q", *text)
			testkit.That(t, strings.Contains(log.String(), file), "the log names the file: %s", log.String())
		}
	}
}
