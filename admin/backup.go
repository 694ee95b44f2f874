package admin

import (
	"context"
	"io"
	"net/http"
)

// Backup gives a backup of the whole yard, taken while it serves, as one stream of bytes. It is whole
// only if it ends with its list, so that who keeps it checks that: eventyard backup does, and writes it
// to a folder that eventyard restore takes. The caller closes it. It needs Manage to the namespace. The
// token is good for a week, unless a ready one was given: that is when a stream that takes longer ends.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	long := *c
	long.signer = c.signer.lasting(longTokenLife)
	response, err := long.do(ctx, request{method: http.MethodGet, path: []string{"backup"}})
	if err != nil {
		return nil, err
	}
	return &backupBody{response.Body, c}, nil
}

// backupBody tells how the connection ended.
type backupBody struct {
	io.ReadCloser
	client *Client
}

func (b *backupBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.client.unreachable(err)
	}
	return n, err
}
