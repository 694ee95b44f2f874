package demo

import (
	"context"
	"io"
)

// Watcher is the process `demo watcher`.
func Watcher(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, _, _, err := listen(ctx, in)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
