package course

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Region is a part of the finished operator that one lab adds:
//
//	// lab:4 begin fetch Fetch the Memcached that req names.
//	...
//	// lab:4 before
//	// return ctrl.Result{}, nil
//	// lab:4 end
//
// From its lab on it stands there without its marker lines. Below, it is
// replaced by one TODO with its text (if it has one), and by the lines after
// "before" (if it has them), uncommented.
type Region struct {
	// ID is unique in the course.
	ID string
	// Lab is the lab that adds the region.
	Lab int
	// Text tells the learner what to write; it may be empty.
	Text string
	// File is a slash path below operator/, Line the line of "begin".
	File string
	Line int

	indent string // of the begin line
	airy   bool   // an empty line follows the begin line
	body   []node
	before []string
}

// node is one line of text, or a region.
type node struct {
	text   string
	region *Region
}

// Problem is a mistake in a file of the course, for its author.
type Problem struct {
	// File is a slash path below the checkout.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Text says what is wrong and what would be right.
	Text string
}

func (p Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// comment is how a kind of file begins a comment that fills a line.
type comment string

func commentOf(name string) comment {
	switch path.Ext(name) {
	case ".go", ".mod":
		return "//"
	}
	return "#"
}

// cut returns what stands before and after the comment's beginning, without the
// one space that belongs to it. ok is false for a line that is no comment.
func (c comment) cut(line string) (indent, text string, ok bool) {
	trimmed := strings.TrimLeft(line, " \t")
	text, ok = strings.CutPrefix(trimmed, string(c))
	return line[:len(line)-len(trimmed)], strings.TrimPrefix(text, " "), ok
}

// line writes text as a comment that fills a line.
func (c comment) line(indent, text string) string { return indent + string(c) + " " + text }

var (
	marker     = regexp.MustCompile(`^lab:(\S*)\s*(\S*)\s*(.*)$`)
	strayLabel = regexp.MustCompile(`\blab:[0-9]+ (begin|before|end)\b`)
)

// parsed is one annotated file: its text and its regions.
type parsed struct {
	name    string // slash path below operator/
	comment comment
	labs    int
	line    int

	top      []node
	open     []*Region
	inBefore bool
	regions  []*Region
	markers  []int // the lines of begin, before and end
	befores  []int // the lines after "before"
	problems []Problem
}

// parse finds the regions of a file. What it returns is only good to render
// when there are no problems.
func parse(name string, data []byte, labs int) *parsed {
	p := &parsed{name: name, comment: commentOf(name), labs: labs}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for i, line := range lines {
		p.line = i + 1
		p.take(line)
	}
	for _, r := range p.open {
		p.problem(r.Line, "region %s has no %q", r.ID, fmt.Sprintf("lab:%d end", r.Lab))
	}
	return p
}

func (p *parsed) problem(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{File: SourceDir + "/" + p.name, Line: line, Text: fmt.Sprintf(format, args...)})
}

func (p *parsed) take(line string) {
	indent, text, isComment := p.comment.cut(line)
	m := marker.FindStringSubmatch(text)
	switch {
	case isComment && m != nil:
		p.markers = append(p.markers, p.line)
		p.directive(indent, m[1], m[2], m[3])
	case strayLabel.MatchString(line):
		p.problem(p.line, "a region's marker fills its line and is a comment of this kind of file: %s", p.comment.line("", "lab:N …"))
	case p.inBefore:
		p.befores = append(p.befores, p.line)
		p.beforeLine(line, indent, text, isComment)
	default:
		if r := p.current(); r != nil && len(r.body) == 0 && p.line == r.Line+1 {
			r.airy = strings.TrimSpace(line) == ""
		}
		p.add(node{text: line})
	}
}

func (p *parsed) current() *Region {
	if len(p.open) == 0 {
		return nil
	}
	return p.open[len(p.open)-1]
}

func (p *parsed) add(n node) {
	if r := p.current(); r != nil {
		r.body = append(r.body, n)
		return
	}
	p.top = append(p.top, n)
}

func (p *parsed) beforeLine(line, indent, text string, isComment bool) {
	r := p.current()
	switch {
	case strings.TrimSpace(line) == "":
		r.before = append(r.before, "")
	case !isComment:
		p.problem(p.line, "after \"before\" every line is a comment until the region ends")
	case text == "":
		r.before = append(r.before, "")
	default:
		r.before = append(r.before, indent+text)
	}
}

func (p *parsed) directive(indent, number, verb, rest string) {
	lab, err := strconv.Atoi(number)
	if err != nil || lab < 1 || lab > p.labs {
		p.problem(p.line, "lab:%s: the labs are 1 to %d", number, p.labs)
		return
	}
	switch verb {
	case "begin":
		p.begin(lab, indent, rest)
	case "before":
		p.before(lab)
	case "end":
		p.end(lab, rest)
	default:
		p.problem(p.line, "lab:%d %s: a region has begin, before and end", lab, verb)
	}
}

func (p *parsed) begin(lab int, indent, rest string) {
	id, text, _ := strings.Cut(rest, " ")
	r := &Region{ID: id, Lab: lab, Text: strings.TrimSpace(text), File: p.name, Line: p.line, indent: indent}
	if !identifier.MatchString(id) {
		p.problem(p.line, "%q is not a region's id: lower case words joined by hyphens", id)
	}
	if p.inBefore {
		p.problem(p.line, "region %s: no region begins after \"before\"", id)
	}
	if outer := p.current(); outer != nil && outer.Lab > lab {
		p.problem(p.line, "region %s: lab %d inside of lab %d: an inner region's lab is not smaller", id, lab, outer.Lab)
	}
	p.add(node{region: r})
	p.regions = append(p.regions, r)
	p.open = append(p.open, r)
	p.inBefore = false
}

func (p *parsed) before(lab int) {
	r := p.current()
	switch {
	case r == nil || r.Lab != lab:
		p.problem(p.line, "lab:%d before: no region of lab %d is open here", lab, lab)
	case p.inBefore:
		p.problem(p.line, "region %s: a second \"before\"", r.ID)
	default:
		p.inBefore = true
	}
}

func (p *parsed) end(lab int, id string) {
	r := p.current()
	switch {
	case r == nil || r.Lab != lab:
		p.problem(p.line, "lab:%d end: no region of lab %d is open here", lab, lab)
		return
	case id != "" && id != r.ID:
		p.problem(p.line, "lab:%d end %s: the open region is %s", lab, id, r.ID)
	}
	p.open = p.open[:len(p.open)-1]
	p.inBefore = false
}
