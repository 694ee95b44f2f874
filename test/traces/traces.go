// Package traces holds the test of traces from end to end: a yard, its neighbours and a real receiver of
// OTLP over HTTP, which is shown what became of events. It has no code of its own.
package traces
