package eventhubs

import (
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H5, H6, H7: who may read beside whom, with the very words.
func TestEpochRules(t *testing.T) {
	const (
		evictedTail = " is getting disconnected. If you are recreating the receiver, make sure a higher epoch is used. TrackingId:"
		lowerTail   = " cannot be created. Make sure you are creating receiver with increasing epoch value to ensure connectivity, " +
			"or ensure all old epoch receivers are closed or disconnected. TrackingId:"
		plainTail = ", and so non-epoch receiver is not allowed. Either reconnect with a higher epoch, " +
			"or make sure all epoch receivers are closed or disconnected. TrackingId:"
		quota = "Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5. " +
			"List of connected receivers - nil, nil, nil, nil, nil. TrackingId:"
	)
	five := []listening{{}, {}, {}, {}, {}}
	tests := []struct {
		what    string
		present []listening
		comer   listening
		// evicted is what those present are told; empty: they stay.
		evicted string
		// refused is what the newcomer is told after its attach; attach what it is told instead.
		refused, attach string
		condition       wire.Symbol
	}{
		{what: "with nobody there any epoch is let in", comer: listening{epoch: int64(7)}},
		{what: "with nobody there none is let in"},
		{what: "a higher epoch evicts", present: []listening{{epoch: int64(1), name: "old"}}, comer: listening{epoch: int64(2), name: "new"},
			evicted: "New receiver 'new' with higher epoch of '2' is created hence current receiver 'old' with epoch '1'" + evictedTail},
		{what: "an equal epoch evicts", present: []listening{{epoch: int64(1)}}, comer: listening{epoch: int64(1)},
			evicted: "New receiver 'nil' with higher epoch of '1' is created hence current receiver 'nil' with epoch '1'" + evictedTail},
		{what: "epoch 0 is an epoch", present: []listening{{epoch: int64(0)}}, comer: listening{epoch: int64(0), name: "n"},
			evicted: "New receiver 'n' with higher epoch of '0' is created hence current receiver 'nil' with epoch '0'" + evictedTail},
		{what: "a lower epoch is refused", present: []listening{{epoch: int64(2), name: "old"}}, comer: listening{epoch: int64(1), name: "new"},
			refused: "Receiver 'old' with a higher epoch '2' already exists. Receiver 'new' with epoch 1" + lowerTail, condition: condStolen},
		{what: "a lower epoch without names", present: []listening{{epoch: int64(2)}}, comer: listening{epoch: int64(1)},
			refused: "Receiver 'nil' with a higher epoch '2' already exists. Receiver 'nil' with epoch 1" + lowerTail, condition: condStolen},
		{what: "no epoch beside one is refused", present: []listening{{epoch: int64(3)}}, comer: listening{name: "new"},
			refused: "At least one receiver for the endpoint is created with epoch of '3'" + plainTail, condition: condStolen},
		{what: "an epoch evicts all without", present: []listening{{}, {name: "b"}, {}}, comer: listening{epoch: int64(0), name: "new"},
			evicted: "New receiver 'new' with higher epoch of '0' is created hence current receiver '"},
		{what: "a fifth without epoch is let in", present: five[1:]},
		{what: "a sixth is refused", present: five, attach: quota, condition: condLimit},
		{what: "an epoch that is an int is one", present: []listening{{epoch: int32(2)}}, comer: listening{epoch: int32(1)},
			refused: "Receiver 'nil' with a higher epoch '2' already exists.", condition: condStolen},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := newOrders(t, 1)
			y.store("orders", "0", "x")
			var present []*goamqp.Receiver
			for _, l := range tt.present {
				r := newReceiver(t, y.session(), firstPartition, l)
				receive(t, r, 1)
				present = append(present, r)
			}
			comer, err := y.session().NewReceiver(t.Context(), firstPartition, tt.comer.options())
			switch {
			case tt.attach != "":
				wantError(t, err, tt.condition, tt.attach)
			case tt.refused != "":
				testkit.Must(t, err)
				m, err := comer.Receive(t.Context(), nil)
				if m != nil {
					t.Errorf("it was given %q", m.GetData())
				}
				wantError(t, err, tt.condition, tt.refused)
			default:
				testkit.Must(t, err)
				receive(t, comer, 1)
			}
			y.store("orders", "0", "y")
			for _, r := range present {
				if tt.evicted == "" {
					receive(t, r, 1)
					continue
				}
				m, err := r.Receive(t.Context(), nil)
				if m != nil {
					t.Fatalf("the evicted was given %q", m.GetData())
				}
				wantError(t, err, condStolen, tt.evicted)
			}
		})
	}
}

// H7: a slot is free the moment its receiver has gone, whichever way: by detaching, with
// its session, or with its connection. Groups and partitions do not know each other.
func TestSlotsAreFreedAtOnce(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 2, "other")
	y.store("orders", "0", "x")
	y.store("orders", "1", "x")
	for what, leave := range map[string]func(c *raw){
		"by detaching": func(c *raw) {
			c.write(0, wire.AppendDetach(nil, &wire.Detach{Handle: 0, Closed: true}), nil)
			c.detached()
		},
		"with its session": func(c *raw) {
			c.write(0, wire.AppendEnd(nil, &wire.End{}), nil)
			c.expect(wire.DescriptorEnd)
		},
		"with its connection": func(c *raw) { c.close() },
	} {
		t.Run(what, func(t *testing.T) {
			y := y.in(t)
			c := y.rawAs(auth.RootPolicy)
			c.accepted(0, wire.Attach{
				Name: "r", Role: wire.RoleReceiver, Source: &wire.Source{Address: wire.Some(firstPartition)}, Target: &wire.Target{},
				Properties: wire.Map{{Key: propertyEpoch, Value: int64(5)}},
			})
			for _, elsewhere := range []string{"orders/ConsumerGroups/other/Partitions/0", "orders/ConsumerGroups/$Default/Partitions/1"} {
				other := newReceiver(t, y.session(), elsewhere, listening{})
				receive(t, other, 1)
				testkit.Must(t, other.Close(t.Context()))
			}
			leave(c)
			next := newReceiver(t, y.session(), firstPartition, listening{})
			receive(t, next, 1)
			testkit.Must(t, next.Close(t.Context()))
		})
	}
}

// Receivers that come at the same time, all with the same epoch: each evicts the one
// before, and the last one stays.
func TestAStormOfReceivers(t *testing.T) {
	y := newOrders(t, 1)
	const count = 12
	outcome := make(chan error, count)
	for range count {
		s := y.session()
		go func() {
			r, err := s.NewReceiver(t.Context(), firstPartition, listening{epoch: int64(1)}.options())
			if err == nil {
				_, err = r.Receive(t.Context(), nil)
			}
			outcome <- err
		}()
	}
	for range count - 1 {
		wantError(t, <-outcome, condStolen, "New receiver 'nil' with higher epoch of '1' is created")
	}
	y.store("orders", "0", "x")
	testkit.Must(t, <-outcome)
}
