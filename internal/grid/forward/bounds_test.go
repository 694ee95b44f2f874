package forward

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// asked is a kind whose answers are the questions that got through.
func asked[Q any](f *Forwarder, bound func(Q) (Q, error)) kind[Q, Q] {
	return kind[Q, Q]{f, "test", bound, func(_ context.Context, _ string, q Q) (Q, error) { return q, nil }}
}

// heard gives the question that gets through of one that was sent.
func heard[Q any](t *testing.T, k kind[Q, Q], sent Q) (Q, error) {
	t.Helper()
	body := testkit.Value(json.Marshal(request[Q]{Grant: []byte(`"good"`), Question: sent}))(t)
	var got answer[Q]
	testkit.Must(t, json.Unmarshal(testkit.Value(k.handle(t.Context(), body))(t), &got))
	return got.Answer, got.Error.err()
}

// allowing lets in who shows "good", and nobody else.
func allowing() *Forwarder {
	return &Forwarder{cfg: Config{Allow: func(_ context.Context, grant []byte, _, _ string) error {
		if string(grant) != `"good"` {
			return auth.ErrRevoked
		}
		return nil
	}}}
}

// C4: whatever another node asks for, it gets no more than a listener would ask for.
func TestQuestionsAreBounded(t *testing.T) {
	f := allowing()
	most := 1 << 62
	for _, q := range []receiving{{most, most, 1 << 62}, {-1, -1, -1}, {}} {
		got, err := heard(t, asked(f, boundReceiving), q)
		testkit.Check(t, err)
		testkit.That(t, got.Max >= 0 && got.Max <= maxReceive && got.MaxBytes > 0 && got.MaxBytes <= receiveBytes && got.Wait >= 0 && got.Wait <= maxWait,
			"%+v became %+v", q, got)
	}
	got, err := heard(t, asked(f, boundReceiving), receiving{10, 1000, time.Second})
	testkit.Check(t, err)
	testkit.Equal(t, got, receiving{10, 1000, time.Second}, "what is within the bounds")
	for what, q := range map[string]settling{
		"too many tokens": {Tokens: make([]string, maxTokens+1)}, "a way that is none": {How: delivery.Renew + 1}, "another": {How: -1},
	} {
		testkit.That(t, testkit.Err(heard(t, asked(f, boundSettling), q)) != nil, "it settles %s", what)
	}
	settles, err := heard(t, asked(f, boundSettling), settling{How: delivery.Release, Delay: 1 << 62, Tokens: []string{"a"}})
	testkit.That(t, err == nil && settles.Delay == maxDelay, "%v, %v", settles, err)
	testkit.That(t, testkit.Err(heard(t, asked(f, boundTokens), make([]string, maxTokens+1))) != nil, "it gives back too many tokens")
	page, err := heard(t, asked(f, boundListing), deadletter.Query{Limit: most, MaxBytes: most})
	testkit.That(t, err == nil && page.Limit == maxList && page.MaxBytes == listBytes, "%+v, %v", page, err)
	for what, q := range map[string]deadletter.Query{"before the first": {From: -1}, "less than none": {Limit: -1}} {
		testkit.That(t, testkit.Err(heard(t, asked(f, boundListing), q)) != nil, "it lists %s", what)
		testkit.That(t, testkit.Err(heard(t, asked(f, boundQuery), q)) != nil, "it purges %s", what)
		testkit.That(t, testkit.Err(heard(t, asked(f, boundRedriving), redriving{Query: q})) != nil, "it redrives %s", what)
	}
	testkit.That(t, testkit.Err(heard(t, asked(f, boundRedriving), redriving{Options: deadletter.RedriveOptions{Rate: -1}})) != nil, "it redrives backwards")
	for what, q := range map[string]tracing{"of no partition": {-1, 0}, "before the first": {0, -1}} {
		testkit.That(t, testkit.Err(heard(t, asked(f, boundTracing), q)) != nil, "it traces an event %s", what)
	}
	large := asked[string](f, noBound)
	_, err = large.handle(t.Context(), []byte(`{"grant":"good","question":"`+strings.Repeat("x", maxRequestBytes)+`"}`))
	testkit.That(t, err != nil, "it reads a request of any size")
}

// C4: a request that can be read is done only for who is let in, and within the bounds; others are
// refused, and no request makes a node panic.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"subscription":"a","grant":"good","question":{"Max":10,"MaxBytes":100,"Wait":5,"How":1,"Tokens":["a"],"Query":{"From":1},"Options":{"Rate":1}}}`))
	f.Add([]byte(`{"subscription":"a","question":["a","b"]}`))
	f.Add([]byte(`{"grant":null}`))
	f.Add([]byte(`{"Grant":"good","GRANT":"bad","question":null}`))
	allowed := false
	fwd := allowing()
	judge := fwd.cfg.Allow
	fwd.cfg.Allow = func(ctx context.Context, grant []byte, subject, subscription string) error {
		err := judge(ctx, grant, subject, subscription)
		allowed = err == nil
		return err
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		done := func(within bool, what any) error {
			if !allowed || !within {
				t.Fatalf("it does %+v, allowed %v", what, allowed)
			}
			return nil
		}
		for _, handle := range []func(context.Context, []byte) ([]byte, error){
			kind[receiving, none]{fwd, "receive", boundReceiving, func(_ context.Context, _ string, q receiving) (none, error) {
				return none{}, done(q.Max >= 0 && q.Max <= maxReceive && q.MaxBytes <= receiveBytes && q.Wait >= 0 && q.Wait <= maxWait, q)
			}}.handle,
			kind[settling, none]{fwd, "settle", boundSettling, func(_ context.Context, _ string, q settling) (none, error) {
				return none{}, done(len(q.Tokens) <= maxTokens && q.Delay >= 0 && q.Delay <= maxDelay, q)
			}}.handle,
			kind[redriving, none]{fwd, "redrive", boundRedriving, func(_ context.Context, _ string, q redriving) (none, error) {
				return none{}, done(q.Query.From >= 0 && q.Query.Limit >= 0 && q.Options.Rate >= 0, q)
			}}.handle,
			kind[[]string, none]{fwd, "giveback", boundTokens, func(_ context.Context, _ string, q []string) (none, error) {
				return none{}, done(len(q) <= maxTokens, q)
			}}.handle,
		} {
			allowed = false
			answer, err := handle(t.Context(), body)
			if err == nil && !allowed && !errors.Is(ErrorIn(answer), auth.ErrRevoked) {
				t.Fatalf("it answers %s to who was not let in", answer)
			}
		}
	})
}
