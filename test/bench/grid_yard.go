package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// gridYard is a running yard with one topic.
type gridYard struct {
	*program
	key    string
	http   *http.Client
	header requestHeader // of what is published; nil: none of its own
}

// requestHeader is a header of the publication whose events are numbered from first on.
type requestHeader func(first int) (name, value string)

func startGrid(ctx context.Context, name, dir string, flags ...string) (*gridYard, error) {
	p, err := startProgram(ctx, name, filepath.Join(dir, "data"), flags...)
	if err != nil {
		return nil, err
	}
	y := &gridYard{program: p, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	var topic struct{ Keys struct{ Key1 string } }
	if err := y.call(ctx, "POST", "/api/v1/topics", `{"name":"orders"}`, &topic); err != nil {
		y.close()
		return nil, err
	}
	y.key = topic.Keys.Key1
	return y, nil
}

func (y *gridYard) close() {
	y.http.CloseIdleConnections()
	_ = y.stop()
}

// call asks the management API.
func (y *gridYard) call(ctx context.Context, method, path, body string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(y.url, "/")+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
	request.Header.Set("Content-Type", "application/json")
	response, err := y.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

func (y *gridYard) subscribe(ctx context.Context, name, endpoint, more string) error {
	return y.call(ctx, "POST", "/api/v1/subscriptions", fmt.Sprintf(`{"name":%q,"topic":"orders","endpoint":%q,"skipValidation":true%s}`,
		name, endpoint, more), nil)
}

// publish stores events in requests of so many, from four clients.
func (y *gridYard) publish(ctx context.Context, events, batch int) error {
	var next atomic.Int64
	return each(4, func(int) error {
		for {
			first := int(next.Add(int64(batch))) - batch
			if first >= events {
				return nil
			}
			if err := y.post(ctx, first, min(batch, events-first), gridEvent); err != nil {
				return err
			}
		}
	})
}

// post publishes n events numbered from first on.
func (y *gridYard) post(ctx context.Context, first, n int, event func(id string) string) error {
	var body bytes.Buffer
	for i := range n {
		body.WriteByte(',')
		body.WriteString(event(strconv.Itoa(first + i)))
	}
	body.Bytes()[0] = '['
	body.WriteByte(']')
	request, err := http.NewRequestWithContext(ctx, "POST", strings.TrimSuffix(y.url, "/")+"/topics/orders/api/events", &body)
	if err != nil {
		return err
	}
	request.Header.Set("aeg-sas-key", y.key)
	request.Header.Set("Content-Type", "application/json")
	if y.header != nil {
		request.Header.Set(y.header(first))
	}
	response, err := y.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("publish: %s %s %w", response.Status, text, err)
	}
	return nil
}

// pace publishes single events at a rate and gives when each began.
func (y *gridYard) pace(ctx context.Context, events, rate int) ([]time.Time, error) {
	began := make([]time.Time, events)
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := range events {
		<-tick.C
		began[i] = time.Now()
		wg.Go(func() {
			if err := y.post(ctx, i, 1, gridEvent); err != nil {
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return began, nil
}

func percentile(took []time.Duration, share float64) time.Duration {
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[min(len(took)-1, int(share*float64(len(took))))]
}
