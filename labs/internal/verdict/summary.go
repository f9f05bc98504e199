package verdict

import (
	"path/filepath"
	"slices"

	"github.com/example/operator-lab/labs/internal/trace"
)

// addTimelinesAndAdvice adds what a reader may want to know beside the verdicts: the timeline of one Memcached, and
// after a pass some advice. Both come from what was written down during the run; where that is missing,
// so are they.
func (r *run) addTimelinesAndAdvice(results []*Result) {
	recording, err := trace.ReadFile(filepath.Join(r.artifacts, trace.File))
	if err != nil {
		return // no lab of the run has a manager, or the suite was cut short
	}
	timelines := recording.Timelines()
	for _, result := range results {
		if s := TimelineOf(result, timelines); s != nil {
			result.Trace = s.Line(result.First() != nil)
		}
	}
	if last := results[len(results)-1]; last.Verdict == Pass {
		last.Advice = r.advise(last, recording)
	}
}

// TimelineOf is the one that explains a result: of the first check that failed, or, when all hold, of the
// one in which the most happened. It is nil when there is none.
func TimelineOf(r *Result, timelines []*trace.Timeline) *trace.Timeline {
	if failed := r.First(); failed != nil {
		return trace.About(timelines, failed.ID, failed.Expected+" "+failed.Seen)
	}
	var own, others []string
	for _, c := range r.Checks {
		if c.Lab == r.Lab {
			own = append(own, c.ID)
		} else {
			others = append(others, c.ID)
		}
	}
	return trace.Fullest(timelines, slices.Concat(own, others))
}
