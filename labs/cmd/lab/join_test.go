package main

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func TestJoiningWithASlip(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"no room":         {[]string{"", "ABCD-EFGH-IJKL-MNOP", "Ana"}, exit.UsageError},
		"no name":         {[]string{"127.0.0.1:1", "ABCD-EFGH-IJKL-MNOP", " "}, exit.UsageError},
		"half a key":      {[]string{"127.0.0.1:1", "ABCD-EFGH", "Ana"}, exit.UsageError},
		"nobody is there": {[]string{"127.0.0.1:1", "abcd efgh ijkl mnop", "Ana"}, exit.EnvironmentError},
	} {
		a, _, _ := newTestApp(t)
		if err := cli.Execute(t.Context(), newRootCommand(a), append([]string{"join", "--"}, tc.args...)); exit.Code(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
