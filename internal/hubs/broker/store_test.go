package broker

import "github.com/eventyard/eventyard/internal/storage/meta/metatest"

// memStore is what several brokers share in a test.
type memStore = metatest.Memory

func newMemStore() *memStore { return metatest.NewMemory() }
