package verdict

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/suite"
)

const defect = "this is a defect of the lab: please report it with the artifacts"

// Classification is what a suite's report says about the checks of some labs.
type Classification struct {
	Checks []Check
	// Defect is what kept the suite itself from judging, "" when it judged every check.
	Defect string
}

// Classify reads the checks of labs from a Ginkgo report. Every check of those labs is in the answer,
// in the course's order. canRunPods says what the cluster was able to judge. When the time for the whole suite has run out,
// and a check has failed, the checks that were skipped are given up for that one.
func Classify(report types.Report, labs []*course.Lab, canRunPods bool) Classification {
	specs := map[string]types.SpecReport{}
	var c Classification
	for _, spec := range report.SpecReports {
		if id := checkID(spec); id != "" {
			specs[id] = spec
		} else if spec.Failed() {
			c.Defect = fmt.Sprintf("%s failed: %s", spec.LeafNodeType, spec.FailureMessage())
		}
	}
	failed := firstFailed(specs, labs)
	for _, lab := range labs {
		for _, check := range lab.Checks {
			if !canRunPods && check.NeedsPods() {
				c.Checks = append(c.Checks, Check{ID: check.ID, Title: check.Title, Lab: lab.Number, State: NotChecked})
				continue
			}
			if spec, ran := specs[check.ID]; ran && spec.State == types.SpecStateSkipped && failed != "" {
				c.Checks = append(c.Checks, Check{ID: check.ID, Title: check.Title, Lab: lab.Number, State: Blocked, BlockedBy: failed})
				continue
			}
			answer, broken := classify(specs, lab, check)
			if c.Defect == "" {
				c.Defect = broken
			}
			c.Checks = append(c.Checks, answer)
		}
	}
	return c
}

// firstFailed is the first check that failed by itself, "" without one.
func firstFailed(specs map[string]types.SpecReport, labs []*course.Lab) string {
	for _, lab := range labs {
		for _, check := range lab.Checks {
			spec := specs[check.ID]
			if (spec.State == types.SpecStateFailed || spec.State == types.SpecStateTimedout) && findingOf(spec).Cause != suite.CauseBlocked {
				return check.ID
			}
		}
	}
	return ""
}

func checkID(spec types.SpecReport) string {
	for _, label := range spec.Labels() {
		if id, ok := strings.CutPrefix(label, suite.CheckLabel); ok {
			return id
		}
	}
	return ""
}

// classify gives the answer of one check, and what is broken about the suite.
func classify(specs map[string]types.SpecReport, lab *course.Lab, check course.Check) (Check, string) {
	answer := Check{ID: check.ID, Title: check.Title, Lab: lab.Number, State: Failed}
	spec, ran := specs[check.ID]
	answer.Seconds, answer.Began, answer.Ended = spec.RunTime.Seconds(), spec.StartTime, spec.EndTime
	switch {
	case !ran:
		return answer, fmt.Sprintf("the check %s did not run", check.ID)
	case spec.State == types.SpecStatePassed:
		answer.State = Passed
		return answer, ""
	case spec.State == types.SpecStatePanicked:
		return answer, fmt.Sprintf("the check %s panicked: %s", check.ID, spec.Failure.ForwardedPanic)
	case spec.State == types.SpecStateFailed || spec.State == types.SpecStateTimedout:
		f := findingOf(spec)
		if f.Cause == suite.CauseBlocked {
			answer.State, answer.BlockedBy = Blocked, f.Seen
			return answer, ""
		}
		answer.Cause, answer.Expected, answer.Seen, answer.Fields = f.Cause, f.Expected, f.Seen, f.Fields
		answer.Evidence = evidenceOf(spec)
		plain.Within(&answer)
		return answer, ""
	default:
		return answer, fmt.Sprintf("the check %s was %s", check.ID, spec.State)
	}
}

func findingOf(spec types.SpecReport) *finding.Finding {
	for _, text := range entries(spec, suite.FindingEntry) {
		if f, err := finding.Parse(text); err == nil {
			return f
		}
	}
	return &finding.Finding{Cause: finding.CauseOther, Expected: "the check to end", Seen: strings.TrimSpace(spec.Failure.Message)}
}

// evidenceOf is what the harness saw around a failure; it may be nothing.
func evidenceOf(spec types.SpecReport) (evidence []finding.Evidence) {
	for _, text := range entries(spec, suite.EvidenceEntry) {
		if json.Unmarshal([]byte(text), &evidence) == nil {
			return evidence
		}
	}
	return nil
}

// entries are the JSON texts of the report entries of a name.
func entries(spec types.SpecReport, name string) (texts []string) {
	for _, entry := range spec.ReportEntries {
		if entry.Name == name {
			texts = append(texts, entry.Value.AsJSON)
		}
	}
	return texts
}

// Block turns failed checks whose prerequisite failed into blocked ones. Without it every check is
// shown in its own right.
func Block(checks []Check, labs []*course.Lab) {
	requires := map[string][]string{}
	for _, lab := range labs {
		for _, c := range lab.Checks {
			requires[c.ID] = c.Requires
		}
	}
	state, givenUpFor := map[string]State{}, map[string]string{}
	for _, c := range checks {
		state[c.ID], givenUpFor[c.ID] = c.State, c.BlockedBy
	}
	for i := range checks {
		if checks[i].State != Failed && checks[i].State != Blocked {
			continue
		}
		if root := rootOf(checks[i].ID, requires, state, givenUpFor, map[string]bool{}); root != checks[i].ID {
			checks[i].State, checks[i].BlockedBy = Blocked, root
		}
	}
}

// requirements are, for each check, all checks that it stands on, however indirectly.
func requirements(labs []*course.Lab) map[string][]string {
	all := map[string][]string{}
	for _, lab := range labs {
		for _, c := range lab.Checks {
			for _, need := range c.Requires {
				all[c.ID] = append(append(all[c.ID], need), all[need]...)
			}
		}
	}
	return all
}

// rootOf follows failed prerequisites, and the checks for whose failure others were given up, to the one that
// failed by itself. A check can be given up for one that requires it: seen ends that circle.
func rootOf(id string, requires map[string][]string, state map[string]State, givenUpFor map[string]string, seen map[string]bool) string {
	if seen[id] {
		return id
	}
	seen[id] = true
	for _, need := range requires[id] {
		if state[need] == Failed || state[need] == Blocked {
			return rootOf(need, requires, state, givenUpFor, seen)
		}
	}
	if by := givenUpFor[id]; by != "" {
		return rootOf(by, requires, state, givenUpFor, seen)
	}
	return id
}

// readReport reads the one suite of a Ginkgo JSON report.
func readReport(path string) (types.Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return types.Report{}, fmt.Errorf("read the suite's report: %w", err)
	}
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return types.Report{}, fmt.Errorf("read the suite's report: %w", err)
	}
	if len(reports) != 1 {
		return types.Report{}, fmt.Errorf("read the suite's report: it has %d suites", len(reports))
	}
	return reports[0], nil
}
