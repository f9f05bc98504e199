// Package quantile says where measured values lie.
package quantile

import (
	"cmp"
	"math"
	"slices"
)

// Of is the smallest of the values that p of 100 of them do not exceed (nearest rank), zero when there are none. It is
// always a value that was measured: the median of an even number of values is the lower one of the two in the middle,
// and the 95th percentile of fewer than 20 values is the largest.
func Of[T cmp.Ordered](values []T, p int) T {
	if len(values) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(float64(len(sorted)*p)/100))-1)]
}
