package mutants

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/example/operator-lab/labs/internal/course"
)

const (
	// labTarget is how many seconds 95 of 100 verdicts on wrong answers may take on two cores, counted
	// from the ready cluster; rerunTarget is that of a lab that runs others again.
	labTarget   = 10.0
	rerunTarget = 20.0
	// hintWidth is how much of a hint the table shows.
	hintWidth = 64
)

// Table prints outcomes for a person, line by line.
type Table struct {
	w             io.Writer
	answer, check int // widths
}

// NewTable prints the head of a table for these answers.
func NewTable(w io.Writer, answers []Answer) *Table {
	t := &Table{w: w, answer: len("answer"), check: len("caught by")}
	for _, a := range answers {
		t.answer = max(t.answer, len(a.ID()))
		if a.Mutant != nil {
			t.check = max(t.check, len(caughtBy(a.Mutant.Caught, a.Mutant.Cause)))
		}
	}
	t.row("lab", "answer", "caught by", "seconds", "hint")
	return t
}

func (t *Table) row(lab, answer, check, seconds, hint string) {
	line := fmt.Sprintf("%-4s %-*s  %-*s  %7s  %s", lab, t.answer, answer, t.check, check, seconds, hint)
	fmt.Fprintln(t.w, strings.TrimRight(line, " "))
}

func caughtBy(check, cause string) string {
	if check == "" {
		return ""
	}
	return check + ": " + cause
}

// Tell prints one outcome, and below it what is not as it should be.
func (t *Table) Tell(o Outcome) {
	caught := caughtBy(o.Caught, o.Cause)
	switch {
	case o.ID == starter && len(o.Wrong) == 0:
		caught = "every check of the lab"
	case o.Right && caught == "":
		caught = "passes"
	}
	t.row(fmt.Sprint(o.Lab), o.ID, caught, fmt.Sprintf("%.1f", o.Seconds), shorten(o.Hint, hintWidth))
	if o.Again != "" {
		fmt.Fprintf(t.w, "     %s %s\n", color.YellowString("judged once more, because the machine was to blame:"), o.Again)
	}
	for _, text := range o.Wrong {
		fmt.Fprintf(t.w, "     %s %s\n", color.RedString("wrong:"), text)
	}
	if len(o.Wrong) > 0 {
		fmt.Fprintf(t.w, "     the evidence is in %s\n", o.Artifacts)
	}
}

func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// Summary is the outcome of a run as a whole.
type Summary struct {
	// Caught wrong answers and starters, and Passed right ones, are as they should be, Wrong outcomes are not.
	Caught int `json:"caught"`
	Passed int `json:"passed"`
	Wrong  int `json:"wrong"`
	// Again is how many were judged once more because the machine was to blame.
	Again int    `json:"again"`
	Paces []Pace `json:"paces"`
	// Repeated has one entry for each answer that was judged more than once.
	Repeated []Repeated `json:"repeated,omitempty"`
}

// Repeated is how many runs of one answer came out as expected.
type Repeated struct {
	Lab      int    `json:"lab"`
	ID       string `json:"id"`
	Runs     int    `json:"runs"`
	Expected int    `json:"expected"`
}

// Pace is how long the verdicts on the wrong answers of some labs took, in seconds.
type Pace struct {
	Labs   string  `json:"labs"`
	Count  int     `json:"count"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Target float64 `json:"target"`
}

// Summarize counts and measures.
func Summarize(c *course.Course, outcomes []Outcome) Summary {
	s := Summary{Repeated: repeated(outcomes)}
	seconds := map[bool][]float64{} // by whether the lab runs others again
	labs := map[bool][]int{}
	for _, o := range outcomes {
		if o.Again != "" {
			s.Again++
		}
		switch {
		case len(o.Wrong) > 0:
			s.Wrong++
		case o.Right:
			s.Passed++
		default:
			s.Caught++
		}
		if !o.Right && o.ID != starter {
			again := len(c.Labs[o.Lab-1].Reruns) > 0
			labs[again] = append(labs[again], o.Lab)
			seconds[again] = append(seconds[again], o.Seconds)
		}
	}
	for _, again := range []bool{false, true} {
		if len(seconds[again]) == 0 {
			continue
		}
		target := labTarget
		if again {
			target = rerunTarget
		}
		s.Paces = append(s.Paces, Pace{
			Labs: span(labs[again]), Count: len(seconds[again]), Target: target,
			Median: percentile(seconds[again], 50), P95: percentile(seconds[again], 95),
		})
	}
	return s
}

// repeated counts the runs of each answer that has more than one, in the order of the first runs.
func repeated(outcomes []Outcome) []Repeated {
	var counts []Repeated
	for _, o := range outcomes {
		i := slices.IndexFunc(counts, func(c Repeated) bool { return c.Lab == o.Lab && c.ID == o.ID })
		if i < 0 {
			i = len(counts)
			counts = append(counts, Repeated{Lab: o.Lab, ID: o.ID})
		}
		counts[i].Runs++
		if len(o.Wrong) == 0 {
			counts[i].Expected++
		}
	}
	return slices.DeleteFunc(counts, func(c Repeated) bool { return c.Runs < 2 })
}

func span(labs []int) string {
	first, last := slices.Min(labs), slices.Max(labs)
	if first == last {
		return fmt.Sprintf("lab %d", first)
	}
	return fmt.Sprintf("labs %d to %d", first, last)
}

// Print writes the summary for a person.
func (s Summary) Print(w io.Writer) {
	for _, p := range s.Paces {
		verdict := "within"
		if p.P95 > p.Target {
			verdict = color.RedString("beyond")
		}
		fmt.Fprintf(w, "%s: from the ready cluster to the verdict %.1f s (median of %d), 95 of 100 within %.1f s: %s the target of %.0f s\n",
			p.Labs, p.Median, p.Count, p.P95, verdict, p.Target)
	}
	for _, c := range s.Repeated {
		fmt.Fprintf(w, "%d/%s: %d of %d runs as expected\n", c.Lab, c.ID, c.Expected, c.Runs)
	}
	fmt.Fprintf(w, "%d caught, %d wrong", s.Caught, s.Wrong)
	if s.Passed > 0 {
		fmt.Fprintf(w, ", %d right answers passed", s.Passed)
	}
	fmt.Fprintln(w)
}

// percentile is the smallest of the values that p of 100 of them do not exceed (nearest rank), zero when there are none. It
// is always a value that was measured.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(float64(len(sorted)*p)/100))-1)]
}
