//go:build !linux

package main

import "time"

// sleepUntil is as exact as the runtime's timers.
func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
