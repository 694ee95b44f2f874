package nodes

import (
	"fmt"
	"strconv"
	"strings"
)

// unfinished says what is still to be done when nobody sends any more; empty: nothing.
func (j *judge) unfinished(ends []int64) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for number, a := range j.parts {
		if end := ends[number]; a.checkpoint.Sequence != end-1 {
			return fmt.Sprintf("partition %d ends at %d, %d is handled, the checkpoint is %d%s", number, end, a.handled, a.checkpoint.Sequence, a.story())
		}
	}
	return ""
}

// compare judges what a node reads in the end of one partition, from its first event to its last.
func (j *judge) compare(node string, partition int, texts []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a := j.parts[partition]
	for at, text := range texts {
		j.readLocked(node, a, int64(at), text)
	}
	for at := range a.texts {
		if at >= int64(len(texts)) {
			j.failLocked("event %d of partition %d was read, and node %s has only %d", at, partition, node, len(texts))
		}
	}
	j.orderLocked(a, texts)
	for text, at := range a.acked {
		if at >= int64(len(texts)) || texts[at] != text {
			j.failLocked("%q was acknowledged as event %d of partition %d, and is not there at node %s", text, at, partition, node)
		}
	}
}

// orderLocked: each try is there once at most, each sender's events come in their order, and each
// producer's once and without a hole.
func (j *judge) orderLocked(a *account, texts []string) {
	seen, last, made := map[string]bool{}, map[string]int{}, map[string]int{}
	for at, text := range texts {
		if seen[text] {
			j.failLocked("%q is twice in partition %d, again as event %d", text, a.number, at)
		}
		seen[text] = true
		words := strings.Split(text, "/")
		n, _ := strconv.Atoi(words[1])
		if len(words) == 2 { // a producer's
			if n != made[words[0]] {
				j.failLocked("event %d of partition %d is %q, and %d was to come", at, a.number, text, made[words[0]])
			}
			made[words[0]]++
			continue
		}
		// A try that nobody heard of may come late: what counts is when its event came first.
		if n > last[words[0]]+1 || n == last[words[0]]+1 && !j.firstLocked(a, words[0], n-1, seen) {
			j.failLocked("event %d of partition %d is %q, and %d was the newest of its sender", at, a.number, text, last[words[0]])
		}
		last[words[0]] = max(last[words[0]], n)
	}
	for name, count := range a.made {
		if made[name] < count {
			j.failLocked("%d events of producer %s are in partition %d, and %d were acknowledged", made[name], name, a.number, count)
		}
	}
}

// firstLocked: a sender's event of that number is among those seen.
func (j *judge) firstLocked(a *account, sender string, n int, seen map[string]bool) bool {
	prefix := fmt.Sprintf("%s/%d/", sender, n)
	for text := range a.acked {
		if strings.HasPrefix(text, prefix) && seen[text] {
			return true
		}
	}
	return false
}
