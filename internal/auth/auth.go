// Package auth decides who may do what: rights, the grants that carry them, shared-access
// signatures and connection strings. It is pure: keys and the time come in, a verdict
// goes out.
package auth

import (
	"errors"
	"time"
)

// Rights is a set of what may be done. Manage implies the others.
type Rights uint8

const (
	Send Rights = 1 << iota
	Listen
	manage
	// Manage is everything.
	Manage = Send | Listen | manage
)

// RootPolicy is the name of the policy that every namespace has from its first start.
const RootPolicy = "RootManageSharedAccessKey"

// DevelopmentKey is the key of the official emulator, good for RootPolicy while every
// door of the yard is on loopback.
const DevelopmentKey = "SAS_KEY_VALUE"

// Grant is what a token or key gives: rights to everything at or beneath a path, until
// it expires.
type Grant struct {
	// Path is a hub, or something beneath one, as Path makes it; empty is the whole
	// namespace.
	Path   string
	Rights Rights
	// Expires zero: never.
	Expires time.Time
	// Holder names the policy, or the subject of a bearer token, for logs.
	Holder string
}

var (
	// ErrMalformed: it is no token, or lacks a part.
	ErrMalformed = errors.New("token is malformed")
	// ErrSignature: the signature does not fit, or no such policy exists.
	ErrSignature = errors.New("token has an invalid signature")
	// ErrExpired: its time is over. The error's text names the time.
	ErrExpired = errors.New("token is expired")
	// ErrAudience: the token is good, but not for what it was put for.
	ErrAudience = errors.New("token has a wrong audience")
	// ErrUnsupported: tokens of this kind are not accepted here.
	ErrUnsupported = errors.New("tokens of this kind are not accepted")
)
