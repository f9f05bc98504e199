package embedded

import (
	"slices"
	"strings"
	"testing"
)

// programs by name, as they would be run.
func planned(t *testing.T) map[string][]string {
	t.Helper()
	args := map[string][]string{}
	for _, p := range plan(map[string]string{}, 12345).Programs {
		args[p.Name] = p.Args
	}
	if len(args) != len(programNames()) {
		t.Fatalf("%d programs, want %v", len(args), programNames())
	}
	return args
}

func TestNothingListensButOnLoopback(t *testing.T) {
	for name, args := range planned(t) {
		for _, arg := range args {
			flag, value, _ := strings.Cut(arg, "=")
			address := strings.HasSuffix(flag, "-address") && flag != "--advertise-address"
			if address && value != "127.0.0.1" {
				t.Errorf("%s listens on %s", name, arg)
			}
			if strings.HasPrefix(flag, "--listen-") && !strings.HasPrefix(value, "unix://") && !strings.HasPrefix(value, "http://127.0.0.1:") {
				t.Errorf("%s listens on %s", name, arg)
			}
		}
	}
	for _, name := range []string{controllerManager, scheduler} {
		if !slices.Contains(planned(t)[name], "--secure-port=0") {
			t.Errorf("%s listens, and nobody asks it anything", name)
		}
	}
}

func TestTheAPIServerAsksWhoMayDoWhat(t *testing.T) {
	args := planned(t)[apiServer]
	for _, want := range []string{"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"} {
		if !slices.Contains(args, want) {
			t.Errorf("the API server runs without %s", want)
		}
	}
}
