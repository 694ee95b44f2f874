// Package traces holds the test of traces from end to end: a yard, its neighbours and a receiver of OTLP over HTTP, which
// is shown what became of events. The receiver is the test's own, on OpenTelemetry's definitions; make collector
// runs the same tests with the receiver of OpenTelemetry's own Collector in between. It has no code of its own.
package traces
