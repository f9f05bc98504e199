package guide_test

import (
	"regexp"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/course/guide"
)

// These are about the course itself, not about this package's code.

const checkout = "../../../.."

func TestTheGuideIsInOrder(t *testing.T) {
	for _, problem := range lint(t, coursetest.Load(t, checkout)) {
		t.Error(problem)
	}
}

var (
	command   = regexp.MustCompile("(?m)(?:`|^ *|=long )make ([a-z]+(?:-[a-z]+)*(?:-[0-9])?)")
	makeRule  = regexp.MustCompile(`(?m)^([a-z][a-z%-]*):.*## `)
	labNumber = regexp.MustCompile(`-[0-9]$`)
)

// Whoever reads the guide types what stands there.
func TestTheGuideNamesCommandsThatExist(t *testing.T) {
	exists := map[string]bool{}
	for _, file := range []string{"Makefile", "operator/Makefile"} {
		for _, m := range makeRule.FindAllStringSubmatch(coursetest.Read(t, checkout, file), -1) {
			exists[m[1]] = true
		}
	}
	named := 0
	for _, m := range command.FindAllStringSubmatch(coursetest.Read(t, checkout, guide.File), -1) {
		named++
		target := labNumber.ReplaceAllString(m[1], "-%")
		if !exists[target] {
			t.Errorf("make %s: there is no such target", m[1])
		}
	}
	if named < 15 {
		t.Errorf("the test found only %d commands in the guide", named)
	}
}
