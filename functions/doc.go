// Package functions runs handlers reliably in spite of broken events, bugs and outages: with retries
// that keep order, poison events put away, and a circuit breaker shared by all instances.
//
//	host := functions.NewHost(client, functions.Config{})
//	host.Handle("resize", functions.Each(resize), functions.Binding{
//		Hub: "images", Group: "resizer",
//		Retry:   functions.Exponential(4, time.Second),
//		Breaker: functions.Breaker{Failures: 100, Within: 30 * time.Second},
//	})
//	err := host.Run(ctx)
//
// A function is a processor (package processor) that knows what to do when a call fails. Start as
// many hosts with the same functions as you like, wherever: they share the partitions, and events
// of a partition come in order, at least once. A handler gets batches, or single events with Each,
// or is a program in any language with HTTP. What it returns is the verdict: nil is done,
// RetryAfter, Poison, Unavailable, Skip and *Results say what else, and any other error, a panic or
// a time-out follows the policy.
//
// # Life of a batch
//
//	          ┌──────────── the policy's wait, in place ─────────────┐
//	          ▼                                                      │
//	──▶ circuit closed? ──▶ call ──▶ done ──▶ checkpoint             │
//	          │ no            └────▶ failed ──▶ retries left? ─ yes ─┘
//	          ▼                                      │ no
//	     wait; nothing moves                         ▼
//	                          several events: halves, left to right; one call decides on a part of several
//	                          one event:      does the circuit allow one failure more? ─ no ─▶ it stays undone
//	                                                                     │ yes
//	                                                                     ▼
//	                                                    poison event in the poison hub ──▶ checkpoint
//
// An event that is found this way is called once more, alone, before it is put away, so that no
// good event is put away because of another one or of a transient failure. Nothing else of the
// partition is handled meanwhile (with Binding.Lanes: of the lane), so that order holds; other
// partitions are not concerned. The checkpoint passes an event when it is done, skipped, put away
// or dropped, and not before.
//
// # What counts, and what does not
//
// A call that outlives its Timeout has failed, whatever it returns. A call whose context ends
// because the partition is taken away (stop, handoff, lost lease) counts for nothing, whatever it
// returns: the events come again with the attempts they had. Only what Each had finished before
// that is done.
//
// A program that cannot be reached, and what a handler says is Unavailable, is no event's fault: it
// uses up no retries and puts nothing away. The events wait, with back-off; the breaker counts that
// once it has lasted for longer than the retries. Where a connection was there and broke, or the
// program answers 502, 503 or 504, the event may be the cause after all: it counts as failed if
// calls for other events of the function succeed between its attempts, here at this instance.
//
// Attempts are stored beside the checkpoint and survive restarts. So do calls in which an instance
// died, once events have failed or owners have died at the same event three times: from then on
// calls are recorded before they are made, those for events that may have killed are the only ones
// of their host, and an event that kills every instance that handles it ends in the poison hub like
// any other. A single death puts nothing away.
//
// # The circuit
//
//	          more than N failures in W            Breaker.Probe is over
//	closed ───────────────────────────────▶ open ───────────────────────▶ half-open: one event at one instance
//	  ▲ ▲                                    │ ▲                            │    │
//	  │ └───────────── Resume ───────────────┘ └───────── it failed ────────┘    │
//	  └────────────────────────────────────────────────── it was handled ────────┘
//	any ── Hold ──▶ held ── Resume ──▶ closed
//
// Its state is one record in the store, which all instances watch. While it is not closed no call
// starts, nothing is put away, no checkpoint moves, and leases are kept. Calls in progress end
// normally: their events are done, and their checkpoint follows after the circuit was closed, with
// the next one or when the partition is idle, or when it is given up, so that the next owner does
// not do them again. What was decided before is still written: poison events that were about to be,
// N at most over all instances, and a checkpoint that was marked (Checkpoints.Every or Events).
// After closing, everything that had failed gets a fresh round of retries.
//
// # What is put away, and how often
//
// An event that has used up its retries becomes a poison event: the event as it was, with the
// reason, the attempts and its stable id. Into a yard's hub it is written exactly once, whichever
// instance dies at any time: that it is about to be written, and under which number, is stored
// before, and a yard stores each number once. Into any other target (PoisonTo) it is written at
// least once, with the same id. As long as it cannot be written the partition waits. Redriving a
// poison event publishes the event again for this function alone; others skip it.
//
// # What is stored
//
// All of it as entries of the consumer group in the processor's store, small and changed by
// compare-and-set:
//
//	work/FUNCTION/PARTITION      attempts, what is away above the checkpoint, what was about to be put away
//	circuit/FUNCTION             the circuit
//	failures/FUNCTION/INSTANCE   each instance's count of failures
//
// A batch that succeeds writes nothing but its checkpoint, and looks at nothing but the circuit's
// state in memory.
package functions
