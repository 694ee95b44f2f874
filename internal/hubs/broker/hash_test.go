package broker

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: the same key goes where Azure Event Hubs puts it.
func TestKeysGoWhereAzurePutsThem(t *testing.T) {
	counts := [...]int{2, 4, 5, 8, 32}
	tests := []struct {
		key   string
		hash  int16
		index [len(counts)]int
	}{
		{"7", -15263, [...]int{1, 3, 3, 7, 31}},
		{"131", 30562, [...]int{0, 2, 2, 2, 2}},
		{"7149583486996073602", 12977, [...]int{1, 1, 2, 1, 17}},
		{"FWfAT", -22341, [...]int{1, 1, 1, 5, 5}},
		{"sOdeEAsyQoEuEFPGerWO", -6503, [...]int{1, 3, 3, 7, 7}},
		{"$0cb", 26269, [...]int{1, 1, 4, 5, 29}},
		{"-4189260826195535198", 453, [...]int{1, 1, 3, 5, 5}},
		{"!c*_!I@1^c", 15372, [...]int{0, 0, 2, 4, 12}},
		{"p4*!jioeO/z-!-;w:dh", -3104, [...]int{0, 0, 4, 0, 0}},
		{"abcdefghijkl", -2373, [...]int{1, 1, 3, 5, 5}},
		{"device-1", 26788, [...]int{0, 0, 3, 4, 4}},
		{"device-2", 12622, [...]int{0, 2, 2, 6, 14}},
		{"日本語", -23353, [...]int{1, 1, 3, 1, 25}},
		{"", 0, [...]int{0, 0, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			testkit.Equal(t, keyHash(tt.key), tt.hash, "hash")
			testkit.Equal(t, keyHash([]byte(tt.key)), tt.hash, "hash of the bytes")
			for i, n := range counts {
				testkit.Equal(t, PartitionForKey(tt.key, n), tt.index[i], "of %d partitions it", n)
			}
		})
	}
}

// H2: whatever the key, there is a partition for it.
func TestEveryKeyHasAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		n := rapid.IntRange(1, MaxPartitions).Draw(t, "partitions")
		if got := PartitionForKey(key, n); got < 0 || got >= n {
			t.Fatalf("partition %d of %d", got, n)
		}
	})
}

func BenchmarkPartitionForKey(b *testing.B) {
	for b.Loop() {
		PartitionForKey("customer-4189260826195535198", 32)
	}
}
