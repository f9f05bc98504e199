package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// goSettings are the settings of the Go command that a build keeps from its user; everything else,
// GOFLAGS above all, is reset so that a learner's machine and ours build the same program.
var goSettings = []string{"GOCACHE", "GOCACHEPROG", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOROOT"}

// BuildLimit bounds one compilation of the learner's code.
const BuildLimit = 5 * time.Minute

// LinkerFlags are the flag of the Go command with which every program with a learner's code is linked. Without symbols and what debuggers
// need, a build takes a quarter less; panics tell their lines all the same. And Go links alone: what it does not know as an object it would
// give to the linker of C, for which a text is a script that may make any file of this machine a part of the program.
const LinkerFlags = "-ldflags=-s -linkmode=internal"

// BuildEnv is the environment in which a learner's code is compiled: no cgo, no workspace file, no
// toolchain download, no flags of the user.
func BuildEnv(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, goSettings...)...)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	settings := map[string]string{}
	if err := json.Unmarshal(out, &settings); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		"CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=", "GOENV=off",
	}
	for _, name := range goSettings {
		if settings[name] != "" {
			env = append(env, name+"="+settings[name])
		}
	}
	for _, name := range []string{
		"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
	} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}
