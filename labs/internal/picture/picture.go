// Package picture draws the pictures of the lessons as SVG, from the YAML files in docs/pictures. They follow the light or dark
// mode of the reader. The same text gives the same bytes.
package picture

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// Dir is the folder of the pictures and their sources, below the checkout.
const Dir = "docs/pictures"

// source is one file of [Dir]. It has one of Route, Boxes, Lanes and Screens.
type source struct {
	Title string `yaml:"title"` // what the picture shows, for those who cannot see it

	Route  map[int]string `yaml:"route"`  // what the operator has after each lab; each lab gets a picture in which it is lit
	Finish string         `yaml:"finish"` // the text of the last box

	Boxes   []*box     `yaml:"boxes"`
	Arrows  []string   `yaml:"arrows"`  // "FROM -> TO: text", with ids of boxes
	Columns int        `yaml:"columns"` // of the grid
	Row     float64    `yaml:"row"`     // the height of a row, in pixels
	Gap     [2]float64 `yaml:"gap"`     // between columns and between rows, in pixels

	Lanes []string `yaml:"lanes"` // the first one is the learner's
	Steps []string `yaml:"steps"` // "FROM -> TO: text", or "LANE: text" for what happens in one lane

	Screens []screen `yaml:"screens"` // of a terminal, one after the other
}

// Stale returns all pictures of the course, and the names of those that differ from the files in [Dir].
func Stale(c *course.Course) (want course.Tree, stale []string, err error) {
	dir := filepath.Join(c.Root, Dir)
	files, err := course.ReadTree(dir)
	want, have := course.Tree{}, course.Tree{}
	for _, name := range files.Paths() {
		if picture, isSource := strings.CutSuffix(name, ".yaml"); !isSource {
			have[name] = files[name]
		} else if err := draw(c, picture, files[name].Data, want); err != nil {
			return nil, nil, fmt.Errorf("%s/%s: %w", Dir, name, err)
		}
	}
	return want, want.Diff(have), err
}

func draw(c *course.Course, name string, text []byte, into course.Tree) (err error) {
	s := &source{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(s); err != nil {
		return err
	}
	v := &canvas{}
	switch {
	case s.Route != nil:
		titles, err := labTitles(c)
		for today := range titles {
			v := &canvas{}
			s.routeTo(today, titles)
			if err := s.grid(v); err != nil {
				return err
			}
			into[fmt.Sprintf("%s-%d.svg", name, today)] = v.file(fmt.Sprintf("%s: lab %d of %d", s.Title, today, len(titles)-1))
		}
		return err
	case s.Boxes != nil:
		err = s.grid(v)
	case s.Lanes != nil:
		err = s.sequence(v)
	default:
		s.terminal(v)
	}
	into[name+".svg"] = v.file(s.Title)
	return err
}

// labTitles are those of the manifests. Lab 0 has none: its title is the heading of its lesson.
func labTitles(c *course.Course) (titles []string, err error) {
	lesson, err := os.ReadFile(filepath.Join(c.Root, course.LabZero, "README.md"))
	heading, _, _ := strings.Cut(string(lesson), "\n")
	titles = append(titles, strings.TrimPrefix(heading, "# Lab 0: "))
	for _, lab := range c.Labs {
		titles = append(titles, lab.Title)
	}
	return titles, err
}

const (
	width  = 800.0 // of a picture, in pixels
	margin = 16.0
	line   = 17.0 // from one line of text to the next
	letter = 7.2  // the room of a letter in whatever font a reader has
)

// style has colours with enough contrast in both modes. The page is drawn, too: what is around it may be light where the system
// is dark.
//
//go:embed style.css
var style string

// canvas collects the elements of a picture, and how far down they reach.
type canvas struct {
	strings.Builder
	bottom float64
	css    string // beside style
}

func (v *canvas) file(title string) course.File {
	const file = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]v %[2]v" width="%[1]v" height="%[2]v" role="img">
<title>%[3]s</title>
<style>%[4]s</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
<rect class="page" width="100%%" height="100%%" rx="8"/>
%[5]s</svg>
`
	return course.File{Mode: 0o644, Data: fmt.Appendf(nil, file, width, math.Ceil(v.bottom+margin), html.EscapeString(title), style+v.css, v.String())}
}

func (v *canvas) rect(class string, r rect) {
	fmt.Fprintf(v, `<rect class="%s" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="6"/>`+"\n", class, r.x, r.y, r.w, r.h)
	v.bottom = max(v.bottom, r.y+r.h)
}

// text writes text in the width of a room, as many lines as it takes; what follows its first line break is smaller. x is where
// anchor is, y the middle of all lines.
func (v *canvas) text(class, anchor string, x, y, room float64, text string) {
	heading, more, _ := strings.Cut(text, "\n")
	lines, size := plain.Wrap(heading, int(room/letter)), ""
	first := len(lines)
	if more != "" {
		lines = append(lines, plain.Wrap(more, int(room/letter))...)
	}
	fmt.Fprintf(v, `<text class="%s" text-anchor="%s">`, class, anchor)
	for i, text := range lines {
		if i == first {
			size = ` class="more"`
		}
		fmt.Fprintf(v, `<tspan%s x="%.0f" y="%.0f">%s</tspan>`, size, x, y+4.5+line*(float64(i)-float64(len(lines)-1)/2), html.EscapeString(text))
	}
	v.WriteString("</text>\n")
}

func (v *canvas) arrow(x1, y1, x2, y2 float64) {
	fmt.Fprintf(v, `<path marker-end="url(#tip)" d="M%.0f %.0fL%.0f %.0f"/>`+"\n", x1, y1, x2, y2)
}
