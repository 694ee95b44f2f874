// Package interop proves with real foreign clients what the doors promise. Each part
// starts a yard as a process of its own, as a user would, and lets a client that others
// wrote work with it: the official Event Hubs libraries for Go, Python, JavaScript and
// Java, unmodified, and a generic AMQP client. README.md tells how to run one part alone.
package interop
