package wire

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// small is an event of 100 bytes in its stored form.
func small(t testing.TB) []byte { return section(t, DescriptorData, make([]byte, 100)) }

// sent is a transfer as the hub sends one for each event.
func sent() Transfer {
	return Transfer{Handle: 1, DeliveryID: Some[uint32](70_000), DeliveryTag: []byte{0, 1, 17, 112},
		MessageFormat: Some[uint32](0), Settled: Some(true)}
}

// appendDelivered writes the whole frame that a consumer gets for one event.
func appendDelivered(dst []byte, t *Transfer, d *Delivery, stored []byte) ([]byte, error) {
	dst, frame := BeginFrame(dst, FrameAMQP, 1)
	dst, err := AppendDelivery(AppendTransfer(dst, t), d, stored)
	return EndFrame(dst, frame), err
}

// Nothing that happens once for each event, or for each answer, allocates.
func TestTransfersDoNotAllocate(t *testing.T) {
	var (
		stored      = small(t)
		annotated   = join(section(t, DescriptorHeader, []any{true}), section(t, DescriptorMessageAnnotations, Map{{Symbol("x"), 1}}), stored)
		transfer    = sent()
		disposition = Disposition{Role: RoleReceiver, First: 7, Last: Some[uint32](300), Settled: true, State: State{Outcome: OutcomeAccepted}}
		flow        = Flow{NextIncomingID: Some[uint32](1), IncomingWindow: 5000, Handle: Some[uint32](0), LinkCredit: Some[uint32](1000)}
		delivery    = Delivery{Sequence: 1 << 40, EnqueuedTime: 1 << 41, Key: []byte("key"), Metrics: &DeliveryMetrics{LastSequence: 1 << 50}}
		numbered    = join(section(t, DescriptorMessageAnnotations, ours()), stored)
		dst         = make([]byte, 0, 4096)
	)
	transferBytes := AppendTransfer(nil, &transfer)
	dispositionBytes := AppendDisposition(nil, &disposition)
	flowBytes := AppendFlow(nil, &flow)
	for name, f := range map[string]func(){
		"writing a transfer":     func() { dst = AppendTransfer(dst[:0], &transfer) },
		"writing a disposition":  func() { dst = AppendDisposition(dst[:0], &disposition) },
		"writing a flow":         func() { dst = AppendFlow(dst[:0], &flow) },
		"writing a delivery":     func() { dst, _ = appendDelivered(dst[:0], &transfer, &delivery, stored) },
		"merging annotations":    func() { dst, _ = appendDelivered(dst[:0], &transfer, &delivery, annotated) },
		"normalizing":            func() { dst, _, _ = Normalize(dst[:0], numbered) },
		"reading a frame header": func() { _, _ = ReadFrameHeader(dst[:8]) },
		"reading a transfer": func() {
			r := NewReader(transferBytes)
			_, _ = r.ReadDescriptor()
			_, _ = r.ReadTransfer()
		},
		"reading a disposition": func() {
			r := NewReader(dispositionBytes)
			_, _ = r.ReadDescriptor()
			_, _ = r.ReadDisposition()
		},
		"reading a flow": func() {
			r := NewReader(flowBytes)
			_, _ = r.ReadDescriptor()
			_, _ = r.ReadFlow()
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, testing.AllocsPerRun(100, f), 0, "%s allocates", name)
		})
	}
}

func BenchmarkAppendTransfer(b *testing.B) {
	t, dst := sent(), make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendTransfer(dst[:0], &t)
	}
}

func BenchmarkAppendDelivery(b *testing.B) {
	for name, d := range map[string]Delivery{
		"plain":   {Sequence: 123_456_789, EnqueuedTime: 1_700_000_000_000},
		"key":     {Sequence: 123_456_789, EnqueuedTime: 1_700_000_000_000, Key: []byte("device-1")},
		"metrics": {Sequence: 123_456_789, EnqueuedTime: 1_700_000_000_000, Metrics: &DeliveryMetrics{LastSequence: 200_000_000}},
	} {
		b.Run(name, func(b *testing.B) {
			stored, t, dst := small(b), sent(), make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, err = appendDelivered(dst[:0], &t, &d, stored); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(dst)))
		})
	}
}

func BenchmarkReadTransfer(b *testing.B) {
	t := sent()
	encoded := append(AppendTransfer(nil, &t), small(b)...)
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(encoded)
		testkit.Must(b, testkit.Err(r.ReadDescriptor()))
		testkit.Must(b, testkit.Err(r.ReadTransfer()))
	}
}

func BenchmarkReadDisposition(b *testing.B) {
	encoded := AppendDisposition(nil, &Disposition{Role: RoleReceiver, First: 70_000, Settled: true, State: State{Outcome: OutcomeAccepted}})
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(encoded)
		testkit.Must(b, testkit.Err(r.ReadDescriptor()))
		testkit.Must(b, testkit.Err(r.ReadDisposition()))
	}
}

func BenchmarkAppendDisposition(b *testing.B) {
	d := Disposition{Role: RoleReceiver, First: 70_000, Settled: true, State: State{Outcome: OutcomeAccepted}}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendDisposition(dst[:0], &d)
	}
}

func BenchmarkNormalizeSmall(b *testing.B) {
	for name, msg := range map[string][]byte{
		"plain":      small(b),
		"key":        join(section(b, DescriptorMessageAnnotations, Map{{Symbol(AnnotationPartitionKey), "device-1"}}), small(b)),
		"idempotent": join(section(b, DescriptorMessageAnnotations, ours()[5:]), small(b)),
	} {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, _, err = Normalize(dst[:0], msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
