package room

import (
	"cmp"
	"slices"
	"strings"
)

// SortByName sorts learners as people count: learner-2 before learner-10, and without regard to case.
func SortByName(learners []*Learner) {
	slices.SortStableFunc(learners, func(a, b *Learner) int {
		return cmp.Or(compareNames(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.ID, b.ID))
	})
}

func compareNames(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingNumber(a), leadingNumber(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func leadingNumber(text string) string {
	n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		n = len(text)
	}
	return text[:n]
}
