package crd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	version   = "v1alpha1"
	plural    = "memcacheds"
	shortName = "mc"
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
			return finding.New("stale", w.Name()+" in "+suite.ManifestDir, "only %s", list(have))
		}
		if err := generate.Stale(have[i], w, suite.ManifestDir+"/"+have[i].File+" as controller-gen makes it of today's types"); err != nil {
			return err
		}
		have = slices.Delete(slices.Clone(have), i, i+1)
	}
	if len(have) > 0 {
		return finding.New("extra-manifest", "only "+list(want)+" in "+suite.ManifestDir, "also %s", list(have))
	}
	return nil
}

// unreadable turns the complaint about a manifest that is no YAML into this check's own: no generator
// wrote that.
func unreadable(err error) error {
	if f := (*finding.Finding)(nil); errors.As(err, &f) && f.Cause == "refused" {
		return f.WithCause("stale")
	}
	return err
}

func list(manifests []generate.Manifest) string {
	var names []string
	for _, m := range manifests {
		names = append(names, fmt.Sprintf("%s (%s)", m.Name(), m.File))
	}
	return strings.Join(names, ", ")
}

// isEstablished asks whether the API server took the names and serves the kind.
func isEstablished(definition *apiextensionsv1.CustomResourceDefinition) error {
	for _, want := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		if apihelpers.IsCRDConditionTrue(definition, want) {
			continue
		}
		seen := "no such condition"
		if c := apihelpers.FindCRDCondition(definition, want); c != nil {
			seen = fmt.Sprintf("%s: %s", c.Status, c.Message)
		}
		return finding.New("not-established", fmt.Sprintf("the condition %s of %s to be True", want, definition.Name), "%s", seen)
	}
	return nil
}

// hasNames asks whether the API server knows the kind under the names of the lesson.
func hasNames(definition *apiextensionsv1.CustomResourceDefinition) error {
	names := definition.Status.AcceptedNames
	for _, n := range []struct{ cause, what, want, got string }{
		{"wrong-group", "group", suite.Group, definition.Spec.Group},
		{"wrong-kind", "kind", suite.Kind, names.Kind},
		{"wrong-plural", "plural", plural, names.Plural},
		{"wrong-scope", "scope", string(apiextensionsv1.NamespaceScoped), string(definition.Spec.Scope)},
		{"other", "kind of lists", suite.Kind + "List", names.ListKind},
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

// describes asks whether kubectl explain has something of the learner's own to say about a field.
func describes(ctx context.Context, memcacheds *crd.Resource, path ...string) error {
	name := strings.Join(append([]string{"memcached"}, path...), ".")
	expected := "a description of `" + name + "`"
	if memcacheds.Property(path...) == nil {
		return finding.New("no-description", expected, "the definition has no such field")
	}
	text, err := memcacheds.Description(ctx, path...)
	if err != nil {
		return err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return finding.New("no-description", expected, "none")
	}
	for _, scaffold := range []string{"example field", "INSERT ADDITIONAL", "EDIT THIS FILE"} {
		if strings.Contains(text, scaffold) {
			return finding.New("placeholder", expected+" in your own words", "%q", text)
		}
	}
	return nil
}
