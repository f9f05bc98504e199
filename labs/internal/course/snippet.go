package course

import (
	"fmt"
	"strings"
)

// Snippet returns the text of a region for a lesson: as it stands at the
// region's own lab, without marker lines, TODOs and common indentation, ending
// with a line end.
func (c *Course) Snippet(id string) (string, error) {
	s, err := c.source()
	if err != nil {
		return "", err
	}
	r := s.regions[id]
	if r == nil {
		return "", fmt.Errorf("there is no region %q in %s/", id, SourceDir)
	}
	return dedent(r.render(r.Lab, false)), nil
}

// dedent takes away the white space that all lines with text begin with.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	common, first := "", true
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if first {
			common, first = indent, false
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, common), " \t")
	}
	return strings.Join(lines, "\n")
}
