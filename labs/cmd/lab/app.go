package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/internal/exit"
)

// app is what every command shares: where things are and where to write.
type app struct {
	root  string // the checkout
	state string // .lab below it
	cache string // LAB_CACHE, else operator-lab in the user's cache directory

	in  io.Reader
	out io.Writer // reports
	err io.Writer // progress

	cluster   string // --cluster: auto, kind, embedded
	nodeImage string // --node-image, "" = choose
	workspace string // --workspace, absolute
	yes       bool   // --yes: consent to what needs root or minutes

	judges judging // what the room is asked for a cluster for
}

// newApp finds the checkout that the working directory is in.
func newApp() (*app, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	return &app{
		root: root, state: filepath.Join(root, ".lab"), cache: cache,
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
	}, nil
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "labs", "course.yaml")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", exit.Usage("%s is not inside a checkout of operator-lab: cd into it first", dir)
		}
	}
}

func cacheDir() (string, error) {
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", exit.Usage("no cache directory: set LAB_CACHE or HOME (%v)", err)
	}
	return filepath.Join(dir, "operator-lab"), nil
}
