package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the report for a person at a terminal.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.Machine)
	if len(r.Samples) > 0 {
		r.printRows(w)
	}
	if len(r.Growth) > 0 {
		align(w, growthTable(r.Growth))
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "failed: %s\n", f)
	}
}

func (r *Report) printRows(w io.Writer) {
	fmt.Fprintf(w, "%d rounds in an order drawn from seed %d; %s\n\n", r.Rounds, r.Seed, estimators)
	align(w, figureTable(r.Rows))
	for _, row := range r.Rows {
		for _, note := range row.Notes {
			fmt.Fprintf(w, "%s: %s\n", row.Figure, note)
		}
	}
	for _, p := range r.Profiles {
		fmt.Fprintf(w, "%s\n", p)
	}
	fmt.Fprintf(w, "\n%s\n", r.Wrong.say(r.Machine.Commit))
}

// estimators says what the numbers of a table are.
const estimators = "medians and 95th percentiles by nearest rank (of fewer than 20 values, p95 is the largest)"

// String is one line.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores (%s), %s, %s, kernel %s, cgroup %s, %s, kind %s, Kubernetes %s, %s, commit %s",
		m.Cores, orUnknown(m.Processor), megabytes.format(float64(m.Bytes)), m.System, orUnknown(m.Kernel), orUnknown(m.Cgroup),
		orUnknown(m.Engine), orUnknown(m.Kind), orUnknown(m.Kubernetes), m.Go, orUnknown(m.Commit))
}

// String is one line: the whole, and its parts.
func (p Profile) String() string {
	var parts []string
	for _, part := range p.Parts {
		parts = append(parts, part.Name+" "+seconds.format(part.Seconds))
	}
	return fmt.Sprintf("%s, %s: %s", p.Series, seconds.format(p.Seconds), strings.Join(parts, ", "))
}

// String is one line.
func (f Failure) String() string {
	return fmt.Sprintf("%s, round %d: %s", f.Subject, f.Round, strings.Join(strings.Fields(f.Error), " "))
}

// figureTable is the table of promises as cells, its head first.
func figureTable(rows []Row) [][]string {
	table := [][]string{{"figure", "n", "median", "p95", "core-s", "against", "median", "p95", "core-s", "ratio", "target", "result"}}
	for _, r := range rows {
		ratio := ""
		if r.Result != NotMeasured {
			ratio = fmt.Sprintf("%.3g", r.Ratio)
		}
		line := []string{r.Figure}
		line = append(line, r.Ours.cells(r.unit, r.Cores)...)
		line = append(line, r.Against)
		line = append(line, r.Theirs.cells(r.unit, r.TheirsCores)[1:]...)
		table = append(table, append(line, ratio, "≤ "+r.bound(r.Target), r.Result))
	}
	return table
}

// cells are number, median and 95th percentile, and both of the core-seconds. What is not known is empty.
func (s Spread) cells(u unit, cores Spread) []string {
	line := []string{fmt.Sprint(s.Count), "", "", ""}
	if s.Count > 0 {
		line[1], line[2] = u.format(s.Median), u.format(s.P95)
	}
	if cores.Count > 0 {
		line[3] = fmt.Sprintf("%.1f / %.1f", cores.Median, cores.P95)
	}
	return line
}

func growthTable(rows []Growth) [][]string {
	table := [][]string{{"clusters", "ready after", "each", "core-s each", "memory each", "disk each", "cores at rest", "healthy", "gone after"}}
	for _, g := range rows {
		n := float64(g.Clusters)
		table = append(table, []string{
			fmt.Sprintf("%d %s", g.Clusters, g.On), seconds.format(g.Seconds), seconds.format(g.Seconds / n),
			coreSeconds.format(g.CoreSeconds / n), megabytes.format(float64(g.Bytes) / n), megabytes.format(float64(g.DiskBytes) / n),
			fmt.Sprintf("%.2f", g.Cores), fmt.Sprintf("%d after %s", g.Healthy, time.Duration(g.RestSeconds)*time.Second),
			seconds.format(g.DeleteSeconds),
		})
	}
	return table
}

// align writes cells in columns.
func align(w io.Writer, table [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(t, strings.TrimRight(strings.Join(line, "\t"), "\t"))
	}
	_ = t.Flush() // w is a terminal or a buffer
	fmt.Fprintln(w)
}

// markdown writes cells as a table of Markdown.
func markdown(table [][]string) string {
	var b strings.Builder
	for i, line := range table {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(line)))
		}
	}
	return b.String()
}

// Page is what a page of documentation shows of the report: the table of promises, or, of a run that asked for it, how
// the cost grows.
func (r *Report) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s with `%s`.\n\n", r.Started.UTC().Format(time.DateTime+" MST"), r.Command)
	b.WriteString(r.Machine.String())
	if image := r.Machine.NodeImage; image != "" {
		fmt.Fprintf(&b, "; node image `%s`", image)
	}
	b.WriteString(".\n\n")
	if len(r.Growth) > 0 {
		b.WriteString(markdown(growthTable(r.Growth)))
		for _, f := range r.Failures {
			fmt.Fprintf(&b, "\n**Not borne**: %s.\n", f.Subject)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%d rounds in an order drawn from seed %d. The numbers are %s; core-s are median / p95.\n\n%s", r.Rounds, r.Seed, estimators, markdown(figureTable(r.Rows)))
	b.WriteString(r.remarks())
	fmt.Fprintf(&b, "\n%s\n\nWhere the time goes (medians; parts of a verdict of ours lie side by side):\n\n", r.Wrong.say(r.Machine.Commit))
	for _, p := range r.Profiles {
		fmt.Fprintf(&b, "- %s\n", p)
	}
	return b.String()
}

// remarks are what a reader has to know about the rows: targets that were missed, and notes.
func (r *Report) remarks() string {
	var b strings.Builder
	for _, row := range r.Rows {
		var lines []string
		switch row.Result {
		case Missed:
			lines = append(lines, fmt.Sprintf("**Missed**: %s, where %s was promised.", row.bound(row.Value()), row.bound(row.Target)))
		case NotMeasured:
			lines = append(lines, "**Not measured** in this run.")
		}
		for _, note := range row.Notes {
			lines = append(lines, strings.ToUpper(note[:1])+note[1:]+".")
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", row.Figure, strings.Join(slices.Compact(lines), " "))
		}
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "- A measurement failed: %s\n", f)
	}
	if b.Len() > 0 {
		return "\n" + b.String()
	}
	return ""
}
