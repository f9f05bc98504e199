package main

import (
	"maps"
	"slices"
	"testing"
)

func TestWatchedNamespaces(t *testing.T) {
	for list, want := range map[string][]string{"": nil, "tea": {"tea"}, "tea, coffee,": {"coffee", "tea"}} {
		if have := slices.Sorted(maps.Keys(watchedNamespaces(list))); !slices.Equal(have, want) {
			t.Errorf("%q names %q, want %q", list, have, want)
		}
	}
}
