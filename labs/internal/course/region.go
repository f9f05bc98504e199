package course

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// region is a part of the finished operator that one lab adds:
//
//	// lab:4 begin fetch Fetch the Memcached that req names.
//	...
//	// lab:4 before
//	// return ctrl.Result{}, nil
//	// lab:4 end
//
// Stages from its lab on have its lines without the markers. Earlier stages have, in its place, one TODO with its text (if it has
// one), and the lines after "before" (if it has them), uncommented.
type region struct {
	id   string // unique in the course
	lab  int
	text string // for the learner
	in   *annotated

	line, before, end int // of its markers; before is 0 when there is none
}

// todo is the region's sentence as earlier stages have it.
func (r *region) todo() string { return fmt.Sprintf("TODO(lab %d): %s", r.lab, r.text) }

// annotated is a file of operator/ and the regions in it, in the order in which they begin.
type annotated struct {
	name    string // a slash path below operator/
	lines   []string
	regions []*region
	markers map[int]*region // by the number of a marker's line, from 1
}

// Problem is a mistake in a file of the course, for its author.
type Problem struct {
	File string // a slash path below the checkout, with ":" and a line's number if a region is wrong
	Text string // what is wrong, and what would be right
}

func (p Problem) Error() string { return p.File + ": " + p.Text }

// problemAt makes the problem of a line in a file of operator/.
func problemAt(name string, line int, format string, args ...any) Problem {
	return Problem{fmt.Sprintf("%s/%s:%d", SourceDir, name, line), fmt.Sprintf(format, args...)}
}

var (
	identifier = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	comment    = regexp.MustCompile(`^(\s*)(//|#)( ?)(.*)$`)
	marker     = regexp.MustCompile(`^lab:(\S*)\s*(\S*)\s*(\S*)\s*(.*)$`)
)

// commentSign begins a comment in a file of that name.
func commentSign(name string) string {
	if ext := path.Ext(name); ext == ".go" || ext == ".mod" {
		return "//"
	}
	return "#"
}

// parse finds the regions of a file. Its error is a [Problem].
func parse(name string, data []byte, labs int) (*annotated, error) {
	a := &annotated{name: name, lines: strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), markers: map[int]*region{}}
	var open []*region
	for i, line := range a.lines {
		inner := &region{} // the innermost open one
		if len(open) > 0 {
			inner = open[len(open)-1]
		}
		c := comment.FindStringSubmatch(line)
		isComment := c != nil && c[2] == commentSign(name)
		var m []string
		if isComment {
			m = marker.FindStringSubmatch(c[4])
		}
		if m == nil {
			if inner.before > 0 && !isComment && strings.TrimSpace(line) != "" {
				return nil, problemAt(name, i+1, "after \"before\" every line is a comment until the region ends")
			}
			continue
		}
		lab, _ := strconv.Atoi(m[1])
		if lab < 1 || lab > labs {
			return nil, problemAt(name, i+1, "lab:%s: the labs are 1 to %d", m[1], labs)
		}
		switch verb, id := m[2], m[3]; {
		case verb == "begin" && identifier.MatchString(id) && inner.before == 0 && inner.lab <= lab:
			inner = &region{id: id, lab: lab, text: m[4], in: a, line: i + 1}
			a.regions, open = append(a.regions, inner), append(open, inner)
		case verb == "before" && inner.lab == lab && inner.before == 0:
			inner.before = i + 1
		case verb == "end" && inner.lab == lab:
			inner.end = i + 1
			open = open[:len(open)-1]
		default:
			return nil, problemAt(name, i+1, "lab:%d %s %s is out of place: a region has a begin with an id in lower case, at most one before, "+
				"and an end; none begins in a region of a later lab, nor after before", lab, verb, id)
		}
		a.markers[i+1] = inner
	}
	if len(open) > 0 {
		r := open[len(open)-1]
		return nil, problemAt(name, r.line, "region %s has no \"lab:%d end\"", r.id, r.lab)
	}
	return a, nil
}

// render returns the lines from first to last as a stage has them, with TODOs for later labs or without.
func (a *annotated) render(stage, first, last int, todos bool) string {
	var out strings.Builder
	var later *region // the outermost open region of a later lab
	var before bool   // between "before" and "end"
	for n := first; n <= last; n++ {
		line := a.lines[n-1]
		switch r := a.markers[n]; {
		case r != nil && n == r.line && later == nil && r.lab > stage:
			later = r
			if todos && r.text != "" {
				indent := comment.FindStringSubmatch(line)[1]
				fmt.Fprintf(&out, "%s%s %s\n", indent, commentSign(a.name), r.todo())
				if r.before > 0 && strings.TrimSpace(a.lines[n]) == "" {
					out.WriteString("\n") // or it would become part of the next declaration's comment
				}
			}
		case r != nil:
			before = n == r.before
			if n == r.end && r == later {
				later = nil
			}
		case before && later != nil && n > later.before && later.before > 0:
			if c := comment.FindStringSubmatch(line); c != nil && c[4] != "" {
				line = c[1] + c[4]
			} else {
				line = ""
			}
			out.WriteString(line + "\n")
		case !before && later == nil:
			out.WriteString(line + "\n")
		}
	}
	text := strings.Trim(emptyLines.ReplaceAllString(out.String(), "\n\n"), "\n") + "\n"
	if path.Ext(a.name) == ".go" {
		text = beforeBrace.ReplaceAllString(afterBrace.ReplaceAllString(text, "$1"), "$1")
	}
	return text
}

// The empty lines that markers leave behind: all but one, and in Go also those inside of a brace.
var (
	emptyLines  = regexp.MustCompile(`\n{3,}`)
	afterBrace  = regexp.MustCompile(`([{(]\n)\n+`)
	beforeBrace = regexp.MustCompile(`\n+(\n\s*[})])`)
)

// dedent removes the white space that all lines with text begin with.
func dedent(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	for line := range strings.Lines(text) {
		for line != "\n" && !strings.HasPrefix(line, indent) {
			indent = indent[1:]
		}
	}
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n"+indent, "\n"), "\n")
}
