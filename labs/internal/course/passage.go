package course

import (
	"slices"
	"strings"
)

// Passage is where a region with a text stands in a file of a stage.
type Passage struct {
	Region *Region
	// From and To are its first and its last line, counted from 1.
	From, To int
}

// Passages returns where the regions of a file with a text stand at a stage, in the order of the file
// and outer ones before inner ones. A region of which nothing is left there has none.
func (c *Course) Passages(stage int, name string) ([]Passage, error) {
	tree, err := c.Render(stage)
	if err != nil {
		return nil, err
	}
	s, err := c.source()
	if err != nil {
		return nil, err
	}
	p := s.parsed[name]
	if p == nil {
		return nil, nil
	}
	text, numbers := wordy(string(tree[name].Data))
	var passages []Passage
	for _, r := range p.regions {
		if r.Lab > stage || r.Text == "" {
			continue
		}
		lines, _ := wordy(r.render(stage, true))
		if at := find(text, lines); at >= 0 {
			passages = append(passages, Passage{Region: r, From: numbers[at], To: numbers[at+len(lines)-1]})
		}
	}
	return passages, nil
}

// wordy returns the lines that are not empty, without their indentation, and their numbers: what gofmt
// leaves of a line.
func wordy(text string) (lines []string, numbers []int) {
	for i, line := range strings.Split(text, "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines, numbers = append(lines, strings.Join(fields, " ")), append(numbers, i+1)
		}
	}
	return lines, numbers
}

// find returns where the part begins in all, -1 when it is not there.
func find(all, part []string) int {
	if len(part) == 0 {
		return -1
	}
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.Equal(all[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// Written says whether a learner writes the file by hand: no generator makes it, and it is not one of
// those that the course leaves out.
func (c *Course) Written(name string) bool {
	_, generated := c.config.generatedFile(name)
	return !generated && !c.config.never(name)
}
