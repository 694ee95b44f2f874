package access

import "github.com/eventyard/eventyard/internal/storage/meta/metatest"

// memStore is what several registries share in a test.
type memStore = metatest.Memory

func newMemStore() *memStore { return metatest.NewMemory() }
