package cli

import (
	"os/exec"
	"strings"
	"testing"
)

func TestExportedGoSettingsAreForgotten(t *testing.T) {
	for name, value := range map[string]string{"GOOS": "plan9", "GOARCH": "mips", "GOEXPERIMENT": "nonsense", "GO111MODULE": "off", "GOROOT": "/nonexistent"} {
		t.Setenv(name, value)
	}
	forgetGoSettings()
	out, err := exec.Command("go", "env", "GOOS", "GOARCH", "GO111MODULE").CombinedOutput()
	if text := string(out); err != nil || strings.Contains(text, "plan9") || strings.Contains(text, "mips") || strings.Contains(text, "off") {
		t.Errorf("%v: %s", err, text)
	}
}
