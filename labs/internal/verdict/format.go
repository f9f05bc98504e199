package verdict

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// The formats of a report.
const (
	Text  = "text"  // for people: [Print]
	JSON  = "json"  // a document for each lab: the [Result], with a hint and a place for each failed check
	GCC   = "gcc"   // a line for each failed check, as compilers print them, for editors
	JUnit = "junit" // one document, for CI services
)

// Format writes results for programs, in one of the formats but [Text].
func Format(w io.Writer, format string, results []*Result, c *course.Course) error {
	encoder, located := json.NewEncoder(w), []*Result{}
	encoder.SetIndent("", " ")
	for _, r := range results {
		r := *r // a copy: what is kept, and sent to a classroom, has no places
		r.Checks = slices.Clone(r.Checks)
		for i := range r.Checks {
			if check := &r.Checks[i]; check.State == Failed {
				check.Hint = c.Hint(check.ID, check.Cause, 0)
				check.File, check.Line = c.Place(r.Workspace, c.HintRegion(check.ID, check.Cause))
			}
		}
		located = append(located, &r)
		switch format {
		case GCC:
			gcc(w, &r)
		case JSON:
			if err := encoder.Encode(r); err != nil {
				return err
			}
		}
	}
	if format == JUnit {
		return junit(w, located)
	}
	return nil
}

// compilerLine is a line of the Go command about a place: file, line with column, and text.
var compilerLine = regexp.MustCompile(`(?m)^([^\s:#][^\n:]*\.(?:go|mod):\d+(?::\d+)?): `)

// gcc writes lines that begin with a file, relative to the working directory if it is below, and a line, as far as they are known.
func gcc(w io.Writer, r *Result) {
	dir := r.Workspace + string(filepath.Separator)
	if here, err := os.Getwd(); err == nil {
		dir = strings.TrimPrefix(dir, here+string(filepath.Separator))
	}
	failed := r.failed() // those that explain others first
	switch {
	case r.Verdict == Environment:
		fmt.Fprintf(w, "error: %s (fix: %s) [environment]\n", plain.Line(r.Environment.Finding), plain.Line(r.Environment.Fix))
		failed = nil // what checks said does not count
	case r.Build != nil:
		fmt.Fprintln(w, compilerLine.ReplaceAllString(r.Build.Output, strings.ReplaceAll(dir, "$", "$$")+"$1: error: "))
	}
	for _, check := range failed {
		fmt.Fprintf(w, "%serror: %s: %s [%s]\n", check.place(dir), check.Title, plain.Line(saw(check)), check.ID)
	}
	fmt.Fprintf(w, "lab %d: %s\n", r.Lab, r.Verdict)
}

// place is the file, below dir, and the line of a failure as compilers print them, "" when they are not known.
func (c *Check) place(dir string) string {
	if c.File == "" {
		return ""
	}
	return fmt.Sprintf("%s%s:%d: ", dir, plain.Line(c.File), c.Line)
}

// junit writes a test for each check. What did not run is skipped; that the machine could not judge is an error.
func junit(w io.Writer, results []*Result) error {
	suite := reporters.JUnitTestSuite{Name: "Operator Lab", Timestamp: results[0].Started.UTC().Format("2006-01-02T15:04:05")}
	for _, r := range results {
		suite.Time += r.Seconds
		add := func(test reporters.JUnitTestCase) {
			test.Classname = fmt.Sprintf("lab-%d", r.Lab)
			suite.TestCases = append(suite.TestCases, test)
		}
		switch {
		case r.Verdict == Environment:
			suite.Errors++
			add(reporters.JUnitTestCase{Name: "The machine can judge", Error: &reporters.JUnitError{Message: r.Environment.Finding, Description: "fix: " + r.Environment.Fix}})
			continue
		case r.Build != nil:
			suite.Failures++
			add(reporters.JUnitTestCase{Name: "The code compiles", Failure: &reporters.JUnitFailure{Message: "it does not compile", Description: r.Build.Output}})
		}
		for _, check := range r.Checks {
			test := reporters.JUnitTestCase{Name: fmt.Sprintf("%s (%s)", check.Title, check.ID), Status: string(check.State), Time: check.Seconds}
			switch check.State {
			case Passed:
			case Failed:
				suite.Failures++
				test.Failure = &reporters.JUnitFailure{Message: saw(&check), Type: check.Cause,
					Description: fmt.Sprintf("%sexpected %s\nsaw %s\nhint: %s\n", check.place(""), check.Expected, check.Seen, check.Hint)}
			default:
				suite.Skipped++
				test.Skipped = &reporters.JUnitSkipped{Message: strings.TrimSpace(string(check.State) + " " + check.BlockedBy)}
			}
			add(test)
		}
	}
	suite.Tests = len(suite.TestCases)
	data, err := xml.MarshalIndent(reporters.JUnitTestSuites{Tests: suite.Tests, Disabled: suite.Skipped, Errors: suite.Errors,
		Failures: suite.Failures, Time: suite.Time, TestSuites: []reporters.JUnitTestSuite{suite}}, "", " ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, data)
	}
	return err
}
