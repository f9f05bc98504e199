package load

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTheMeanOfATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, threads := time.Now(), 0
		r := watch(func() int { threads += 10; return threads }) // 10, 20, 30 …, every half second
		time.Sleep(10*interval + interval/2)
		r.End()
		for name, tc := range map[string]struct {
			from, to float64 // in intervals
			want     float64
		}{
			"the whole":                {-5, 50, 60},
			"a part":                   {1, 3, 30},
			"one reading":              {3.5, 4.5, 50},
			"between two readings":     {3.2, 3.8, 0},
			"after the record":         {20, 30, 0},
			"up to the first readings": {-5, 1, 15},
		} {
			at := func(n float64) time.Time { return began.Add(time.Duration(n * float64(interval))) }
			if got := r.During(at(tc.from), at(tc.to)); got != tc.want {
				t.Errorf("%s: %v threads, want %v", name, got, tc.want)
			}
		}
	})
}
