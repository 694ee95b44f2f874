package auth

import (
	"errors"
	"time"
)

// What a caller branches on.
var (
	// ErrMalformed: it is no token, or lacks a part.
	ErrMalformed = errors.New("token is malformed")
	// ErrSignature: the signature does not fit, or no such policy exists.
	ErrSignature = errors.New("token has an invalid signature")
	// ErrExpired: its time is over. It comes as an *ExpiredError, which has the time.
	ErrExpired = errors.New("token is expired")
	// ErrRevoked: what the token or key stood on is not there any more: the policy, its
	// key, or the hub.
	ErrRevoked = errors.New("token is revoked: its policy, the key or the hub was deleted or made anew")
	// ErrAudience: the token is good, but not for what it was put for.
	ErrAudience = errors.New("token has a wrong audience")
	// ErrTooFewRights: the token is good and for the entity, but lacks the right that is required.
	ErrTooFewRights = errors.New("the token gives too few rights")
	// ErrUnsupported: tokens of this kind are not accepted here.
	ErrUnsupported = errors.New("tokens of this kind are not accepted")
	// ErrUnavailable: the service that knows whether the token is good does not answer. The same
	// token may be good later.
	ErrUnavailable = errors.New("token cannot be checked at present")
	// ErrRights: a right has a name that is none, or none was named.
	ErrRights = errors.New("no such right")
	// ErrConnectionString: it lacks a part, or has one that cannot be read.
	ErrConnectionString = errors.New("connection string cannot be used")
)

// ExpiredError says when a token ended. Its text is what Event Hubs answers, which
// clients look for.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return "ExpiredToken: The token is expired. Expiration time: " + e.At.UTC().Format(time.RFC3339) + "."
}

func (e *ExpiredError) Unwrap() error { return ErrExpired }
