package crd

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	manifestDir = "config/crd/bases"
	group       = "cache.example.com"
	version     = "v1alpha1"
	plural      = "memcacheds"
	shortName   = "mc"
)

// open gives the check the installed definition and its resource. It fails the check when there is no
// manifest or when the API server refused it.
func open(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, *crd.Resource) {
	ginkgo.GinkgoHelper()
	definition, resource, err := env.LearnersResource(ctx)
	Expect(err).To(Succeed())
	return definition, resource
}

// areGenerated asks whether the workspace's definitions are those that the generator makes, no more
// and no less.
func areGenerated(have, want []generate.Manifest) error {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h generate.Manifest) bool { return h.Name() == w.Name() })
		if i < 0 {
			return finding.New("stale", w.Name()+" in "+manifestDir, "only %s", list(have))
		}
		if err := generate.Stale(have[i], w, manifestDir+"/"+have[i].File+" as controller-gen makes it of today's types"); err != nil {
			return err
		}
		have = slices.Delete(slices.Clone(have), i, i+1)
	}
	if len(have) > 0 {
		return finding.New("extra-manifest", "only "+list(want)+" in "+manifestDir, "also %s", list(have))
	}
	return nil
}

func list(manifests []generate.Manifest) string {
	var names []string
	for _, m := range manifests {
		names = append(names, fmt.Sprintf("%s (%s)", m.Name(), m.File))
	}
	return strings.Join(names, ", ")
}

// hasNames asks whether the API server knows the kind under the names of the lesson.
func hasNames(definition *apiextensionsv1.CustomResourceDefinition) error {
	names := definition.Status.AcceptedNames
	for _, n := range []struct{ cause, what, want, got string }{
		{"wrong-group", "group", group, definition.Spec.Group},
		{"wrong-plural", "plural", plural, names.Plural},
		{"wrong-scope", "scope", string(apiextensionsv1.NamespaceScoped), string(definition.Spec.Scope)},
	} {
		if n.got != n.want {
			return finding.New(n.cause, "the "+n.what+" "+n.want, "%s", n.got)
		}
	}
	if v := definition.Spec.Versions[0]; v.Name != version || !v.Served { // who installs it has seen to it that there is one
		return finding.New("wrong-version", "the version "+version+" served", "%s", v.Name)
	}
	switch short := names.ShortNames; {
	case len(short) == 0:
		return finding.New("no-short-name", "the short name "+shortName, "none")
	case !slices.Contains(short, shortName):
		return finding.New("wrong-short-name", "the short name "+shortName, "%s", strings.Join(short, ", "))
	}
	return nil
}

// describes wants kubectl explain to say something of the learner's own about a field.
func describes(memcacheds *crd.Resource, path ...string) error {
	expected := "a description of `" + strings.Join(append([]string{"memcached"}, path...), ".") + "` in your own words"
	field := memcacheds.Property(path...)
	switch {
	case field == nil:
		return finding.New("no-description", expected, "the definition has no such field")
	case strings.TrimSpace(field.Description) == "":
		return finding.New("no-description", expected, "none")
	case scaffold.MatchString(field.Description):
		return finding.New("placeholder", expected, "%q", field.Description)
	}
	return nil
}

// scaffold is what kubebuilder writes into new types.
var scaffold = regexp.MustCompile("example field|INSERT ADDITIONAL|EDIT THIS FILE")
