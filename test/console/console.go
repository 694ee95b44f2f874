// Package console holds the tests of the console in a real browser, with a real yard behind it: what
// people see at a desk and on a phone, by day and by night, and what becomes of what they press. It has
// no code of its own.
package console
