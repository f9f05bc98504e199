package picture

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
)

// box is one of a grid.
type box struct {
	ID    string  `yaml:"id"`
	Text  string  `yaml:"text"`
	At    [2]int  `yaml:"at"`    // column and row, from 0
	Span  [2]int  `yaml:"span"`  // columns and rows, at least 1
	Class string  `yaml:"class"` // "", "lit", "done", "plain" without a border, or "frame"
	Frame float64 `yaml:"frame"` // how far it reaches beyond its cells, in pixels
	rect
}

type rect struct{ x, y, w, h float64 }

// grid draws boxes, and straight arrows between them.
func (s *source) grid(v *canvas) error {
	inset := margin
	for _, b := range s.Boxes {
		inset = max(inset, margin+b.Frame)
	}
	cell := (width - 2*inset - float64(s.Columns-1)*s.Gap[0]) / float64(s.Columns)
	boxes := map[string]*box{}
	for _, b := range s.Boxes {
		columns, rows := float64(max(b.Span[0], 1)), float64(max(b.Span[1], 1))
		b.rect = rect{
			inset + float64(b.At[0])*(cell+s.Gap[0]) - b.Frame, margin + float64(b.At[1])*(s.Row+s.Gap[1]) - b.Frame,
			columns*(cell+s.Gap[0]) - s.Gap[0] + 2*b.Frame, rows*(s.Row+s.Gap[1]) - s.Gap[1] + 2*b.Frame,
		}
		boxes[b.ID] = b
		v.rect(b.Class, b.rect)
		if b.Class == "frame" {
			v.text("head", "end", b.x+b.w-12, b.y+b.h-14, b.w, b.Text)
		} else {
			v.text(b.Class, "middle", b.x+b.w/2, b.y+b.h/2, b.w-8, b.Text)
		}
	}
	for _, arrow := range s.Arrows {
		from, to, text := parse(arrow)
		a, b := boxes[from], boxes[to]
		if a == nil || b == nil {
			return fmt.Errorf("arrows: %q is not FROM -> TO: text, with ids of boxes", arrow)
		}
		left, right, top, bottom := max(a.x, b.x), min(a.x+a.w, b.x+b.w), max(a.y, b.y), min(a.y+a.h, b.y+b.h)
		middle, center := (left+right)/2, (top+bottom)/2
		switch {
		case left < right && a.y < b.y:
			v.arrow(middle, bottom, middle, top)
		case left < right:
			v.arrow(middle, top, middle, bottom)
		case a.x < b.x:
			v.arrow(right, center, left, center)
		default:
			v.arrow(left, center, right, center)
		}
		if left < right {
			v.text("label", "start", middle+8, bottom+(top-bottom)/3, cell+s.Gap[0]-16, text) // a frame may begin at half of the way
		} else {
			v.text("label", "middle", middle, center-14, left-right, text)
		}
	}
	return nil
}

// parse reads "FROM -> TO: text"; from is "" for "TO: text".
func parse(arrow string) (from, to, text string) {
	ends, text, _ := strings.Cut(arrow, ": ")
	from, to, found := strings.Cut(ends, " -> ")
	if !found {
		from, to = "", ends
	}
	return from, to, text
}

// routeTo makes a grid of the labs, from left to right and from right to left in turn.
func (s *source) routeTo(today int, titles []string) {
	s.Boxes, s.Arrows = nil, nil
	for i := range len(titles) + 1 {
		b := &box{ID: fmt.Sprint(i), Text: s.Finish, At: [2]int{i % s.Columns, i / s.Columns}}
		if b.At[1]%2 == 1 {
			b.At[0] = s.Columns - 1 - b.At[0]
		}
		if i < len(titles) {
			b.Text = fmt.Sprintf("%d · %s\n%s", i, titles[i], s.Route[i])
		}
		switch {
		case i < today:
			b.Class = "done"
		case i == today:
			b.Class = "lit"
		}
		if s.Boxes = append(s.Boxes, b); i > 0 {
			s.Arrows = append(s.Arrows, fmt.Sprintf("%d -> %d", i-1, i))
		}
	}
}

// sequence draws who does what, from top to bottom, with a lane for each.
func (s *source) sequence(v *canvas) error {
	const head, step = 34.0, 44.0
	lane := (width - 2*margin) / float64(len(s.Lanes))
	middle := func(name string) float64 { return margin + lane*(float64(slices.Index(s.Lanes, name))+0.5) }
	end := margin + head + step*(float64(len(s.Steps))+0.4)
	for i, name := range s.Lanes {
		x, class := middle(name), []string{"lit", ""}[min(i, 1)]
		fmt.Fprintf(v, `<path class="life" d="M%.0f %.0fV%.0f"/>`+"\n", x, margin+head, end)
		v.rect(class, rect{x - lane/2 + 8, margin, lane - 16, head})
		v.text(class+" head", "middle", x, margin+head/2, lane, name)
	}
	for i, text := range s.Steps {
		from, to, said := parse(text)
		if !slices.Contains(s.Lanes, to) || from != "" && !slices.Contains(s.Lanes, from) {
			return fmt.Errorf("steps: %q is not FROM -> TO: text, or LANE: text, with names of lanes", text)
		}
		x, y := middle(to), margin+head+step*(float64(i)+0.8)
		if from == "" {
			v.rect("done", rect{x - lane/2 + 6, y - step/2, lane - 12, step - 4})
			v.text("", "middle", x, y-2, lane-16, said)
			continue
		}
		v.arrow(middle(from), y, x, y)
		v.text("label", "middle", (middle(from)+x)/2, y-13, width, said)
	}
	v.bottom = end
	return nil
}

// screen is what a terminal shows for some seconds.
type screen struct {
	Seconds float64 `yaml:"seconds"`
	Text    string  `yaml:"text"` // lines of at most 80 columns
}

// colours say how a line is painted, by its beginning: as head, red, green or soft.
var colours = regexp.MustCompile(`^(?:(\$ |Lab )|(✗|fail:)|(✓|pass:)|( +(?:expected|saw|hint) ))`)

// terminal draws screens that follow each other, again and again. For a reader who wants no motion, the first one stays.
func (s *source) terminal(v *canvas) {
	all, begin := 0.0, 0.0
	for _, screen := range s.Screens {
		all += screen.Seconds
	}
	v.css = "\ntext{font:14px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;white-space:pre}.screen+.screen{visibility:hidden}"
	for i, screen := range s.Screens {
		v.css += fmt.Sprintf("\n@keyframes s%d{0%%{visibility:hidden}%.1f%%{visibility:visible}%.1f%%{visibility:hidden}}#s%[1]d{animation:s%[1]d %[4]vs step-end infinite}",
			i, 100*begin/all, 100*(begin+screen.Seconds)/all, all)
		begin += screen.Seconds
		fmt.Fprintf(v, `<g class="screen" id="s%d">`+"\n", i)
		for n, text := range strings.Split(strings.TrimRight(screen.Text, "\n"), "\n") {
			class, y := "", margin+line*(float64(n)+1)
			if at := colours.FindStringSubmatchIndex(text); at != nil {
				class = []string{"head", "red", "green", "soft"}[(slices.IndexFunc(at[2:], func(i int) bool { return i >= 0 }))/2]
			}
			fmt.Fprintf(v, `<text class="%s" x="%.0f" y="%.0f">%s</text>`+"\n", class, margin+4, y, html.EscapeString(text))
			v.bottom = max(v.bottom, y)
		}
		v.WriteString("</g>\n")
	}
	v.css += "\n@media(prefers-reduced-motion:reduce){.screen{animation:none!important}}"
}
