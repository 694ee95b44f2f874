// Package auth decides who may do what: rights, the grants that carry them, shared-access
// signatures and connection strings. It is pure: keys and the time come in, a verdict goes out.
package auth

// RootPolicy is the name of the policy that every namespace has from its first start.
const RootPolicy = "RootManageSharedAccessKey"

// DevelopmentKey is the key of the official emulator, good for RootPolicy while every
// listener of the yard is on loopback.
const DevelopmentKey = "SAS_KEY_VALUE"

// MaxTokenBytes is the most that a token may measure. Those of large directories, with
// a list of groups in them, have some kilobytes.
const MaxTokenBytes = 32 << 10
