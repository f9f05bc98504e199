package main

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/trace"
	"github.com/example/operator-lab/labs/internal/verdict"
)

//go:embed timeline.html
var timeline string

// writeTimeline writes a page with the actions of each check into the artifacts of a run. The check open is unfolded.
func writeTimeline(r *verdict.Result, title, open string, actions map[string][]trace.Action) (path string, err error) {
	after := func(actions []trace.Action, i, from int) float64 {
		return actions[i].At.Sub(actions[max(0, from)].At).Seconds()
	}
	page := template.Must(template.New("").Funcs(template.FuncMap{
		"line": plain.Line, "lanes": lanes,
		"since": func(actions []trace.Action, i int) string { return fmt.Sprintf("%.2f", after(actions, i, 0)) },
		"pause": func(actions []trace.Action, i int) string {
			if seconds := after(actions, i, i-1); seconds >= 1 {
				return fmt.Sprintf("%.1f s without an action", seconds)
			}
			return ""
		},
	}).Parse(timeline))
	path = filepath.Join(r.Artifacts, "trace.html")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	return path, errors.Join(page.Execute(file, map[string]any{"Title": title, "Result": r, "Actions": actions, "Open": open}), file.Close())
}

// lanes are the actors: you, your manager, then the others as they appear.
func lanes(actions []trace.Action) []string {
	lanes := []string{trace.You, trace.Manager}
	for _, a := range actions {
		if actor := plain.Line(a.Actor); !slices.Contains(lanes, actor) {
			lanes = append(lanes, actor)
		}
	}
	return lanes
}
