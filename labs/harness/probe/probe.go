// Package probe compiles a program of ours into a learner's module, to find out what their Go types do
// when they run. Nothing is written into the module: the program exists in an overlay of the go command
// only.
package probe

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/example/operator-lab/labs/harness/probe/sharing"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// CauseBuild is the cause of a finding about a module that does not compile.
	CauseBuild = "does-not-build"
	// CauseNoAnswer is the cause when the program was compiled and did not report.
	CauseNoAnswer = "no-answer"

	// Expected is what a program that gave no answer should have done.
	Expected = "a small program that imports your types to start and to end"

	// folder is where the program seems to be in the module. Packages below internal are visible in
	// the whole module and nowhere else.
	folder = "internal/labprobe"
	// complaintLines is how many lines of the compiler are quoted.
	complaintLines = 6
)

var (
	//go:embed main.go.tmpl
	mainText     string
	mainTemplate = template.Must(template.New("main.go").Parse(mainText))
	//go:embed sharing/sharing.go
	sharingText []byte
)

// Reports is what the program writes: a report for each of the learner's two kinds, by Go name.
type Reports map[string]sharing.Report

// Builder compiles the program.
type Builder struct {
	// Workspace is the learner's module. It is only read.
	Workspace string
	// Scratch is a folder for the overlay and the program.
	Scratch string
	// Env is the whole environment of the go command.
	Env []string
	// Limit bounds the compilation.
	Limit time.Duration
}

// Build compiles the program and returns its path. It takes one argument, the file to write its
// [Reports] to. Code that does not compile is a finding with the cause [CauseBuild], a machine that cannot
// compile one with the cause [finding.CauseMachine].
func (b Builder) Build(ctx context.Context) (string, error) {
	module, err := modulePath(b.Workspace)
	if err != nil {
		return "", err
	}
	api, err := apiPackage(b.Workspace)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(b.Scratch, "probe-")
	if err != nil {
		return "", fmt.Errorf("make folder for the probe: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the program is run by somebody with fewer rights
		return "", fmt.Errorf("open folder for the probe: %w", err)
	}
	overlay, err := b.overlay(dir, path.Join(module, folder, "sharing"), path.Join(module, api))
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "probe")
	return program, b.compile(ctx, dir, overlay, program)
}

// overlay writes the program's sources beside the module and the file that tells the go command where
// to imagine them.
func (b Builder) overlay(dir, sharingImport, apiImport string) (string, error) {
	var main bytes.Buffer
	if err := mainTemplate.Execute(&main, struct{ API, Sharing string }{apiImport, sharingImport}); err != nil {
		return "", fmt.Errorf("write probe: %w", err)
	}
	replace := map[string]string{}
	for name, text := range map[string][]byte{"main.go": main.Bytes(), "sharing/sharing.go": sharingText} {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return "", fmt.Errorf("write probe: %w", err)
		}
		replace[filepath.Join(b.Workspace, filepath.FromSlash(folder), filepath.FromSlash(name))] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o644); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	return overlay, nil
}

// pipeDelay is how long the output is still read once the command has ended: on a starved machine the last of it
// comes late, and children of a killed command may hold the pipe open for ever.
const pipeDelay = 10 * time.Second

func (b Builder) compile(ctx context.Context, dir, overlay, program string) error {
	const tried = "compile a small program"
	limited, cancel := context.WithTimeout(ctx, b.Limit)
	defer cancel()
	cmd := process.Tool(limited, b.Workspace, dir, b.Env,
		"go", "build", "-buildvcs=false", process.LinkerFlags, "-overlay="+overlay, "-o", program, "./"+folder)
	cmd.WaitDelay = pipeDelay
	output, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return os.Chmod(program, 0o755) // whatever the umask: another user runs it
	case ctx.Err() != nil:
		return fmt.Errorf("compile probe: %w", ctx.Err())
	case limited.Err() != nil:
		return finding.Machine(tried, fmt.Errorf("the go command was still at it after %v", b.Limit))
	case !errors.As(err, &exited):
		return finding.Machine(tried, err)
	}
	return finding.New(CauseBuild, "types that compile", "%s", b.complaint(string(output)))
}

// complaint keeps the lines that name a place in the learner's code, with paths relative to the
// workspace, or all lines when no place is named.
func (b Builder) complaint(output string) string {
	output = strings.ReplaceAll(output, b.Workspace+string(filepath.Separator), "")
	var places, others []string
	for line := range strings.Lines(output) {
		line = strings.TrimPrefix(strings.TrimRight(line, "\r\n"), "."+string(filepath.Separator))
		switch {
		case strings.HasPrefix(line, "# ") || strings.TrimSpace(line) == "":
		case strings.Contains(line, ".go:"):
			places = append(places, line)
		default:
			others = append(others, line)
		}
	}
	if len(places) == 0 {
		places = others
	}
	return strings.Join(places[:min(len(places), complaintLines)], "\n")
}

// readReport reads a file in a folder that belongs to the learner's program, which may not have us read another one.
func readReport(file string) ([]byte, error) {
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("the report is no plain file")
	}
	return plain.ReadFile(file)
}

// Read reads what the program wrote. ended is how it ended, and output what it printed; without a
// report they tell why, in a finding with the cause [CauseNoAnswer].
func Read(file string, ended error, output string) (Reports, error) {
	data, err := readReport(file)
	reports := Reports{}
	if err == nil {
		err = json.Unmarshal(data, &reports)
	}
	if err == nil {
		return reports, nil
	}
	how := "it ended without an answer"
	if ended != nil {
		how = ended.Error()
	}
	if output = strings.TrimSpace(output); output != "" {
		how += "; it printed: " + output
	}
	return nil, finding.New(CauseNoAnswer, Expected, "%s", how)
}
