//go:build race

package logs

const raced = true
