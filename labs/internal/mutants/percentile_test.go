package mutants

import (
	"testing"
)

func TestPercentile(t *testing.T) {
	upTo := func(n int) (values []float64) {
		for i := n; i > 0; i-- { // not sorted as it should be
			values = append(values, float64(i))
		}
		return values
	}
	for _, tc := range []struct {
		n, p int
		want float64
	}{
		{0, 50, 0}, {1, 50, 1}, {1, 95, 1},
		{5, 50, 3}, {5, 95, 5}, {4, 50, 2},
		{19, 95, 19}, {20, 95, 19}, {21, 95, 20}, {100, 95, 95}, {5, 0, 1},
	} {
		values := upTo(tc.n)
		if got := percentile(values, tc.p); got != tc.want {
			t.Errorf("percentile(1 to %d, %d) = %v, want %v", tc.n, tc.p, got, tc.want)
		}
		if tc.n > 1 && values[0] != float64(tc.n) {
			t.Errorf("percentile(1 to %d, %d) has changed the order of the values", tc.n, tc.p)
		}
	}
}
