package components

import (
	"strings"
	"testing"
	"time"
)

func TestEveryProgramHasItsUsualTime(t *testing.T) {
	for _, name := range Names() {
		if usual[name] == 0 {
			t.Errorf("%s has none, so that no estimate counts it", name)
		}
	}
	for name := range usual {
		if unknown := without([]string{name}, Names()); len(unknown) > 0 {
			t.Errorf("%s is nothing that can be built", name)
		}
	}
}

func TestWhatIsLeftOfABuild(t *testing.T) {
	begun := time.Now()
	const all = 300 * time.Second
	for name, tc := range map[string]struct {
		built, module time.Duration
		share         float64
		elapsed, want time.Duration
	}{
		"before it begins":                   {0, 0, 0, 0, all},
		"while modules are downloaded":       {0, 200 * time.Second, 0, time.Minute, all},
		"too early to know the pace":         {0, 200 * time.Second, 0.1, time.Minute, 280 * time.Second},
		"on a machine as usual":              {0, 200 * time.Second, 0.5, 100 * time.Second, 200 * time.Second},
		"on one that is twice as slow":       {0, 200 * time.Second, 0.5, 200 * time.Second, 400 * time.Second},
		"between two modules":                {200 * time.Second, 0, 0, 100 * time.Second, 50 * time.Second},
		"in the last module":                 {200 * time.Second, 100 * time.Second, 0.5, 250 * time.Second, 50 * time.Second},
		"more packages than were thought of": {0, 200 * time.Second, 3, 200 * time.Second, 100 * time.Second},
	} {
		e := estimate{begun: begun, all: all, built: tc.built}
		if got := e.left(begun.Add(tc.elapsed), tc.module, tc.share).Round(time.Second); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestABuildSaysHowFarItIsAndHowLongItTakes(t *testing.T) {
	begun := time.Now()
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} // 230 s of 298
	e := estimate{begun: begun, all: usually(names) + usually([]string{"etcd", "kwok"})}
	for _, tc := range []struct {
		elapsed         time.Duration
		compiled, total int
		want            string
	}{
		{0, 0, 900, "building kube-apiserver kube-controller-manager kube-scheduler: 0 of 900 packages after 0s, about 5 min of compiling to go"},
		{100 * time.Second, 450, 900, "450 of 900 packages after 1m40s, about 3 min of compiling to go"},
		{time.Minute, 7, 0, ": 7 packages after 1m0s, about 5 min"}, // where no module can be asked
	} {
		if got := e.status(begun.Add(tc.elapsed), names, tc.compiled, tc.total); !strings.Contains(got, tc.want) {
			t.Errorf("%q lacks %q", got, tc.want)
		}
	}
	if got := inWords(59 * time.Second); got != "less than a minute of compiling to go" {
		t.Errorf("%q", got)
	}
}
