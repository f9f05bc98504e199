// Package bench measures what the lab promises about time and memory, side by side with what people do without it:
// kind's own defaults, envtest, and suites that give up after two minutes. Everything is measured in one run, in turn,
// so that whatever else the machine does hits both sides alike.
package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Subject is one thing that is measured once in every round.
type Subject struct {
	Name string
	// Measure takes the samples of one round. What it makes it takes away again, also when ctx ends or when it fails.
	Measure func(ctx context.Context, round int) ([]Sample, error)
}

// Sample is one measurement. What does not apply, or is not known, is 0.
type Sample struct {
	// Series is what was measured; see the constants of series.
	Series string `json:"series"`
	// Round is counted from 1.
	Round int `json:"round"`
	// Seconds are wall seconds.
	Seconds float64 `json:"seconds,omitempty"`
	// CoreSeconds are those of our own processes and of the cluster's containers.
	CoreSeconds float64 `json:"coreSeconds,omitempty"`
	// MachineCoreSeconds are those of everything that ran on the machine meanwhile, the container engine included.
	MachineCoreSeconds float64 `json:"machineCoreSeconds,omitempty"`
	// Bytes of memory.
	Bytes uint64 `json:"bytes,omitempty"`
	// Parts are where the seconds went; some may lie side by side.
	Parts []Part `json:"parts,omitempty"`
	// Note says what a reader has to know about the sample, such as how many checks could not be judged.
	Note string `json:"note,omitempty"`
}

// Part is a part of a sample.
type Part struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Failure is a measurement that did not come about.
type Failure struct {
	Subject string `json:"subject"`
	Round   int    `json:"round"`
	Error   string `json:"error"`

	err error
}

// NewFailure is the failure of a measurement because of err.
func NewFailure(subject string, round int, err error) Failure {
	return Failure{Subject: subject, Round: round, Error: err.Error(), err: err}
}

// Unwrap returns the cause.
func (f Failure) Unwrap() error { return f.err }

// Order is the order in which the subjects are measured: every round has each of them once, shuffled. The same seed
// gives the same order.
func Order(seed int64, rounds, subjects int) [][]int {
	draw := rand.New(rand.NewPCG(uint64(seed), 0))
	order := make([][]int, rounds)
	for i := range order {
		order[i] = draw.Perm(subjects)
	}
	return order
}

// Run measures the subjects, round by round. A measurement that fails is a Failure, and the others go on: one bad round
// should not cost an hour. An error means that ctx ended.
func Run(ctx context.Context, subjects []Subject, rounds int, seed int64, progress func(line string)) ([]Sample, []Failure, error) {
	var samples []Sample
	var failures []Failure
	for i, order := range Order(seed, rounds, len(subjects)) {
		for _, at := range order {
			s, round := subjects[at], i+1
			began := time.Now()
			taken, err := s.Measure(ctx, round)
			if ctx.Err() != nil {
				return samples, failures, ctx.Err()
			}
			if err != nil {
				progress(fmt.Sprintf("round %d of %d, %s: %v", round, rounds, s.Name, err))
				failures = append(failures, NewFailure(s.Name, round, err))
				continue
			}
			progress(fmt.Sprintf("round %d of %d, %s: %s (%.0f s with everything around it)",
				round, rounds, s.Name, told(taken), time.Since(began).Seconds()))
			for _, sample := range taken {
				sample.Round = round
				samples = append(samples, sample)
			}
		}
	}
	return samples, failures, nil
}

// told is what was measured, in a few words: the first sample of each series.
func told(samples []Sample) (text string) {
	var series []string
	for _, s := range samples {
		if slices.Contains(series, s.Series) {
			continue
		}
		series = append(series, s.Series)
		if text != "" {
			text += ", "
		}
		if s.Bytes > 0 {
			text += fmt.Sprintf("%s %s", s.Series, megabytes.format(float64(s.Bytes)))
			continue
		}
		text += fmt.Sprintf("%s %s", s.Series, seconds.format(s.Seconds))
	}
	return text
}
