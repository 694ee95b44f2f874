package config

import "strings"

// DidYouMean is the candidate that a word was probably meant to be, or empty where none is near
// enough: a far-fetched one only leads astray. Case makes no difference.
func DidYouMean(word string, candidates []string) string {
	best, least := "", 1+len(word)/5 // more edits than that, and it is another word
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d <= least && (best == "" || d < least) {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the characters to insert, delete, replace or swap with their
// neighbour to turn a into b (optimal string alignment).
func distance(a, b string) int {
	ar, br := []rune(a), []rune(b)
	before, last := make([]int, len(br)+1), make([]int, len(br)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(ar); i++ {
		row := make([]int, len(br)+1)
		row[0] = i
		for j := 1; j <= len(br); j++ {
			cost := 1
			if ar[i-1] == br[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && ar[i-1] == br[j-2] && ar[i-2] == br[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(br)]
}
