package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

var (
	// hidden is what a browser does not show.
	hidden = regexp.MustCompile(`(?s)<!--.*?-->\n?|</?(?:details|summary)>`)
	// item is the mark of an item in a list.
	item = regexp.MustCompile(`^ *(?:-|\d+\.) `)
)

func (a *app) lesson(_ context.Context, args []string) error {
	c, n, err := a.lab(args...)
	if err != nil {
		return err
	}
	return a.showLesson(c.Labs[n-1].Dir)
}

func (a *app) lessonZero(context.Context, []string) error { return a.showLesson(course.LabZero) }

// showLesson shows the lesson in a folder of the checkout, which is Markdown. Code and tables keep their lines, the rest is folded.
func (a *app) showLesson(dir string) error {
	text, err := os.ReadFile(filepath.Join(a.Root, dir, "README.md"))
	code := false
	for line := range strings.Lines(hidden.ReplaceAllString(string(text), "")) {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if code = code != fence; !code && !fence && !strings.HasPrefix(line, "|") {
			mark := item.FindString(line)
			line = plain.Fold(mark, strings.TrimPrefix(line, mark))
		}
		fmt.Fprint(a.Out, line)
	}
	return err
}
