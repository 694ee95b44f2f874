//go:build race

package natstest

const raced = true
