package rehearsal

import (
	"fmt"
	"time"
)

// busy is how many cores the start of one kind cluster keeps at work. Five of them took 45 s one after the other on two
// cores and 32 s side by side, all of which the cores were busy; that is 64 core-seconds in 45 s.
const busy = 1.4

// Estimate is how long it takes to make n clusters, as many side by side as there are cores, on a machine that took one
// for a cluster alone.
func Estimate(n, cores int, one time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	cores = max(1, cores)
	rounds := time.Duration((n+cores-1)/cores) * one
	// What the cores have to do for all, at the pace at which they did it for one.
	work := time.Duration(float64(n) * float64(one) * min(busy, float64(cores)) / float64(cores))
	return max(rounds, work)
}

// About is a duration as people say it: "40 s" or "4 min", rounded up.
func About(d time.Duration) string {
	const tens = 10 * time.Second
	if d <= 90*time.Second {
		return fmt.Sprintf("%d s", max(1, (d+tens-1)/tens)*10)
	}
	return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
}
