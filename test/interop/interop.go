// Package interop proves with real foreign clients what the listeners promise. Each part starts a
// yard as a process of its own, as a user would, and lets a client that others wrote work with it:
// the official Event Hubs and Event Grid libraries for Go, Python, JavaScript and Java, unmodified,
// a generic AMQP client, and receivers of webhooks. README.md tells how to run one part alone.
package interop
