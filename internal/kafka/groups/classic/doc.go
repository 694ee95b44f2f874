// Package classic is Kafka's classic group as a pure machine: members join, one of them shares out the
// partitions, and all of them are told to join again whenever somebody comes or goes. It does no I/O, reads
// no clock and draws no number: each event is a method that is given the time, and gives back who is to be
// answered what, and whether the group has to be stored first.
//
//	           first join                     all have joined, or the time is over
//	Empty ──────────────────▶ Preparing ─────────────────────────────────────────▶ Completing
//	  ▲                        │  ▲  ▲                                                │   │
//	  └── nobody is left ──────┘  │  └── a member comes, goes, or changes its mind ───┘   │ the leader
//	                              │                                                       │ has assigned
//	                              └──── likewise ──────────────────── Stable ◀────────────┘
//
// A generation begins with Completing. What is stored is the group at the beginning of a generation, when it
// becomes stable, when its last member has left, and when a static member has come back under another id. So
// who restores a group knows every generation that any member has ever heard of, and members that were stable
// go on without a rebalance. What happened since, such as joins that wait, is repeated by clients.
//
// # Waiting
//
// Join and Sync are answered later. Who asks gives a Ticket, by which the answer is found among those of any
// later event. Each ticket is answered once, unless it is abandoned.
//
// # Time
//
// A member is removed when nothing was heard of it for its session time-out, except while it waits for an
// answer. While the group prepares, members have the longest of their rebalance time-outs to join, and then as
// long again to ask for their assignment; who does not is removed, but for static members (KIP-345), which
// have their session time-out in any case. Next says when Tick is to be called.
package classic
