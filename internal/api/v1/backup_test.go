package v1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: what goes wrong before the first byte is a problem; behind it the answer is cut, so that nobody
// takes a part for the whole.
func TestABackupThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		first  string
		err    error
		status int
		whole  bool
	}{
		"whole":   {"all of it", nil, http.StatusOK, true},
		"at once": {"", errors.New("the disk is gone"), http.StatusInternalServerError, true},
		"later":   {"a part", errors.New("the disk is gone"), http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t, func(c *Config) {
					c.Backup = func(_ context.Context, w io.Writer) error {
						if tt.first != "" {
							testkit.Must(t, testkit.Err(io.WriteString(w, tt.first)))
						}
						return tt.err
					}
				})
				if tt.status == http.StatusInternalServerError {
					y.errors.Want(1)
				}
				request, err := http.NewRequestWithContext(t.Context(), "GET", "http://yard/api/v1/backup", nil)
				testkit.Must(t, err)
				request.Header.Set("Authorization", y.authorization)
				response, err := y.ops.next.RoundTrip(request)
				testkit.Must(t, err)
				defer response.Body.Close()
				testkit.Equal(t, response.StatusCode, tt.status, "status")
				got, err := io.ReadAll(response.Body)
				testkit.Equal(t, err == nil, tt.whole, "the answer ends as one: %v", err)
				testkit.That(t, tt.status != http.StatusOK || string(got) == tt.first, "it gave %q", got)
			})
		})
	}
}

// R4: each backup reads all there is, so that one is taken at a time.
func TestOneBackupAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		y := newYard(t, func(c *Config) {
			c.Backup = func(ctx context.Context, w io.Writer) error {
				_, err := io.WriteString(w, "a backup")
				<-release
				return err
			}
		})
		first := make(chan reply, 1)
		go func() { first <- y.do("GET", "/api/v1/backup", nil) }()
		synctest.Wait()
		y.refused(http.StatusConflict, "backup-under-way", "GET", "/api/v1/backup", nil)
		close(release)
		testkit.Equal(t, string((<-first).body), "a backup", "the first")
		y.want(http.StatusOK, "GET", "/api/v1/backup", nil)
	})
}
